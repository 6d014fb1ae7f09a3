"""The connection to the ledger: a pool, transactions, and driver errors as errors of this system."""

from __future__ import annotations

import getpass
import json
import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from threading import RLock
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import psycopg
from psycopg import IsolationLevel, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row, scalar_row
from psycopg_pool import ConnectionPool, PoolTimeout

from ..model.errors import (
    BlockedBySession,
    ForbiddenTransition,
    InvalidDefinition,
    InvalidInput,
    InvalidName,
    LedgerConflict,
    LedgerUnavailable,
    OpenDataFlowError,
    SchemaMismatch,
    StaleAnswers,
)
from ..model.ids import is_storable
from .schema_files import RELEASE_0_1_0, wanted
from .sql import sql

# The driver and its pool warn about connections that they replace. What concerns the caller, we raise; the rest is only
# for a handler that is attached to this logger.
_driver_log = logging.getLogger("psycopg")
_driver_log.addHandler(logging.NullHandler())
_driver_log.propagate = False

Row: TypeAlias = DictRow
Found = TypeVar("Found")

# SQLSTATEs that our functions raise.
_FORBIDDEN_TRANSITION = "DF001"
_INVALID_DEFINITION = "DF002"
_STALE_ANSWERS = "DF003"
_BLOCKED = "DF004"

# On a network that drops all packets, a connection ends after half a minute instead of holding up leases and heartbeats
# for many minutes. The URL can override this.
_GIVE_UP = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}


# Of several hosts, the next one is tried long before a verb gives up.
_NEXT_HOST = {"connect_timeout": 3}

# The same results and plans whatever the role, the database, the server or a PG* variable sets.
_SETTINGS = {
    # One plan for each statement, by index: planning a claim costs more than running it, and a plan that was made while
    # the tables were empty must not read them all later.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "default_transaction_isolation": "read committed",
    "search_path": "pg_catalog",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    # Nothing waits forever. The limits of a person's session would cut verbs off.
    "statement_timeout": "300s",
    # Shorter than deadlock_timeout: we give way before Postgres looks for a victim, which could be a typed statement.
    "lock_timeout": "200ms",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}
_SETTINGS_FROM_17 = {"transaction_timeout": "0"}


class Connection(psycopg.Connection[DictRow]):
    """Reuses its cursors: creating one costs a third of a short statement."""

    #: The schema was found to be the one that this version needs.
    is_verified = False
    #: A pooler such as PgBouncer may run each transaction in another session, which other clients use, too.
    is_pooled = False

    @cached_property
    def rows(self) -> psycopg.Cursor[DictRow]:
        return self.cursor()

    @cached_property
    def values(self) -> psycopg.Cursor[Any]:
        return self.cursor(row_factory=scalar_row)


class Transaction:
    """An open transaction; runs named statements."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def is_pooled(self) -> bool:
        return self._connection.is_pooled

    def rows(self, name: str, /, **parameters: object) -> list[Row]:
        return self._execute(self._connection.rows, name, parameters).fetchall()

    def one(self, name: str, /, **parameters: object) -> Row:
        return self.rows(name, **parameters)[0]

    def value(self, name: str, /, **parameters: object) -> Any:
        """The one column of the one row."""
        return self._execute(self._connection.values, name, parameters).fetchone()

    def run(self, name: str, /, **parameters: object) -> int:
        """How many rows it changed."""
        return self._execute(self._connection.rows, name, parameters).rowcount

    def _execute(
        self, cursor: psycopg.Cursor[Found], name: str, parameters: dict[str, object]
    ) -> psycopg.Cursor[Found]:
        try:
            return cursor.execute(sql(name), parameters, prepare=True)
        except UnicodeEncodeError as error:
            raise InvalidInput(_unstorable(repr(error.object[:60]))) from error

    def run_text(self, text: bytes) -> None:
        """A text of several statements, such as a migration."""
        self._connection.execute(text)


class Ledger:
    """The ledger of one database. Safe to share between threads; make one in each process."""

    def __init__(
        self,
        url: str,
        *,
        actor: str | None = None,
        reason: str = "",
        connections: int = 4,
        patience: timedelta = timedelta(seconds=10),
        rehearsal: bool = False,
    ) -> None:
        #: For --dry-run: all verbs run in one transaction, which is rolled back at the end.
        self.rehearsal = rehearsal
        self._stage: Connection | None = None
        self._on_stage = RLock()
        self.actor = actor or f"{getpass.getuser()}@{socket.gethostname()}"
        for what, text in (("the actor", self.actor), ("the reason", reason)):
            if not is_storable(text):
                raise InvalidInput(_unstorable(what))
        #: The reason of changes that have none.
        self._reason = reason
        self._url = url
        self._server = _server_of(url)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            connection_class=Connection,
            kwargs={
                "autocommit": True,
                "row_factory": dict_row,
                "application_name": "opendataflow",
                "client_encoding": "utf8",
                **_unless_in(url, _GIVE_UP | (_NEXT_HOST if "," in self._server else {})),
            },
            configure=self._configure,
            min_size=0,
            max_size=connections,
            timeout=patience.total_seconds(),
            reconnect_timeout=patience.total_seconds(),
            open=True,
        )

    def rehearsing(self) -> Ledger:
        """The same database; closing it rolls everything back."""
        return Ledger(self._url, actor=self.actor, rehearsal=True)

    def with_one_connection(self) -> Ledger:
        """The same database over a connection of its own, which nothing else can use up."""
        return Ledger(self._url, actor=self.actor, connections=1)

    def close(self) -> None:
        if self._stage is not None:
            with suppress(psycopg.Error):  # a dead connection has rolled back already
                self._stage.execute("rollback")
            self._pool.putconn(self._stage)
            self._stage = None
        self._pool.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(
        self, *, actor: str | None = None, reason: str | None = None, any_schema: bool = False
    ) -> Iterator[Transaction]:
        """All of the block or nothing. `actor` is whom the history names instead of this ledger's actor; `reason` is
        the reason of changes that have none. `any_schema` is for the installer: the schema may be absent or old."""
        with self._connection(any_schema=any_schema) as connection, self._begun(connection):
            if actor is not None or reason:
                Transaction(connection).rows("act_as", actor=actor or self.actor, reason=reason or self._reason)
            yield Transaction(connection)

    @contextmanager
    def statement(self) -> Iterator[Transaction]:
        """Each statement of the block commits by itself; for a verb that is one statement."""
        with self._connection() as connection:
            if self.rehearsal or connection.is_pooled:
                with self._begun(connection):
                    yield Transaction(connection)
            else:
                yield Transaction(connection)

    @contextmanager
    def _begun(self, connection: Connection) -> Iterator[None]:
        with connection.transaction():
            if connection.is_pooled:
                self._set(connection, is_local=True)
            yield

    @contextmanager
    def _connection(self, *, any_schema: bool = False) -> Iterator[Connection]:
        try:
            with self._rehearsed() if self.rehearsal else self._pooled() as connection:
                if not (any_schema or connection.is_verified):
                    self._verify(connection)
                yield connection
        except PoolTimeout:
            raise self._why_no_connection() from None
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError):
                # The other idle connections are probably dead, too.
                self._pool.check()
            raise self._in_our_words(error) from error

    @contextmanager
    def _pooled(self) -> Iterator[Connection]:
        """Like the pool's own context manager, without its commit: there is never anything to commit."""
        connection = self._pool.getconn()
        try:
            yield connection
        finally:
            self._pool.putconn(connection)

    @contextmanager
    def _rehearsed(self) -> Iterator[Connection]:
        """One connection with a transaction that is never committed; transactions of verbs are savepoints in it."""
        with self._on_stage:
            if self._stage is None:
                self._stage = self._pool.getconn()
                self._stage.execute("begin isolation level read committed")
            yield self._stage

    def _why_no_connection(self) -> OpenDataFlowError:
        """The pool does not tell: either the server refuses, or all of our connections are in use."""
        try:
            psycopg.connect(self._url, connect_timeout=5).close()
        except psycopg.Error as error:
            return self._in_our_words(error)
        return LedgerConflict(
            f"all connections of this process to the ledger at {self._server} are in use; "
            f"try again, or give the Ledger more connections"
        )

    def _verify(self, connection: Connection) -> None:
        """Before a verb touches anything: is the schema the one that this version needs?"""
        rows = connection.rows.execute(sql("recorded_migrations")).fetchall()
        recorded = {row["name"]: row["checksum"] for row in rows}
        if newer := sorted(set(recorded) - set(wanted()) - set(RELEASE_0_1_0)):
            raise SchemaMismatch(
                f"the schema of {self._server} is newer than this version (it has {', '.join(newer)}); "
                f"upgrade opendataflow-dagster"
            )
        if recorded != wanted():
            raise SchemaMismatch(
                f"the schema of {self._server} is not the one that this version needs; run: odf schema install"
            )
        connection.is_verified = True

    def _configure(self, connection: Connection) -> None:
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        if not self._set(connection, is_local=False):
            # The actor and the settings go with each transaction, and a prepared statement would be another session's.
            connection.is_pooled = True
            connection.prepare_threshold = None

    def _set(self, connection: Connection, *, is_local: bool) -> bool:
        """For the session, or for the transaction alone. False: the session is not ours, and nothing was set."""
        settings = {**_SETTINGS, "dataflow.actor": self.actor, "dataflow.reason": self._reason}
        if connection.info.server_version >= 170_000:
            settings |= _SETTINGS_FROM_17
        values = {"names": list(settings), "values": list(settings.values())}
        pid = connection.info.backend_pid
        found: int | None = connection.values.execute(
            sql("set"), {**values, "is_local": is_local, "pid": pid}
        ).fetchone()
        return bool(found)

    def _in_our_words(self, error: psycopg.Error) -> OpenDataFlowError:
        said = error.diag.message_primary or str(error).strip() or type(error).__name__
        hint = f"; {error.diag.message_hint}" if error.diag.message_hint else ""
        constraint = error.diag.constraint_name
        if error.sqlstate == _FORBIDDEN_TRANSITION:
            return ForbiddenTransition(f"{said}{hint}")
        if error.sqlstate == _STALE_ANSWERS:
            return StaleAnswers(json.loads(error.diag.message_detail or "[]"))
        if error.sqlstate == _BLOCKED:
            return BlockedBySession(f"the ledger at {self._server}: {said}{hint}")
        if error.sqlstate == _INVALID_DEFINITION:
            return InvalidDefinition(f"{said}{hint}")
        if isinstance(error, errors.UniqueViolation) and constraint == "one_producer_per_dataset":
            return InvalidDefinition(
                f"a DataSet has one producing job: {error.diag.message_detail}; remove one OUT item"
            )
        if isinstance(error, errors.UniqueViolation) and error.diag.table_name == "datastatus":
            return LedgerConflict(f"another process claimed the same chunk on {self._server}; try again")
        if isinstance(error, errors.UniqueViolation) and constraint == "one_manifest_per_version":
            return LedgerConflict(f"another process published a version of the same chunk on {self._server}; try again")
        if isinstance(error, errors.CheckViolation) and constraint is not None and "id" in constraint:
            return InvalidName(f"{said} ({error.diag.message_detail or constraint}); give a printable id")
        if isinstance(
            error, errors.UndefinedTable | errors.InvalidSchemaName | errors.UndefinedFunction | errors.UndefinedColumn
        ):
            return SchemaMismatch(
                f"the schema of {self._server} is not installed or too old ({said}); run: odf schema install"
            )
        if isinstance(error, errors.DeadlockDetected | errors.SerializationFailure | errors.LockNotAvailable):
            return LedgerConflict(f"another transaction on {self._server} blocked this one ({said}); try again")
        if isinstance(error, errors.InvalidRegularExpression):
            return InvalidDefinition(f"{said}; correct the regular expression")
        if isinstance(error, errors.ProgramLimitExceeded):
            return InvalidInput(f"this exceeds a limit of Postgres ({_one_line(said)}); split it into smaller portions")
        if isinstance(error, errors.NumericValueOutOfRange):
            return InvalidInput(f"a number is too large to be stored ({said[:100]}); use a smaller one")
        if isinstance(error, errors.UntranslatableCharacter | errors.InvalidTextRepresentation) or "NUL" in said:
            return InvalidInput(_unstorable("a text"))
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return LedgerUnavailable(
                f"the ledger at {self._server} is read-only for this login ({said}); connect to the primary server "
                f"(of several hosts: target_session_attrs=read-write), or reset default_transaction_read_only"
            )
        if isinstance(error, errors.QueryCanceled | errors.DiskFull | errors.OutOfMemory):
            return LedgerUnavailable(
                f"the ledger at {self._server} could not finish a statement ({_one_line(said)}); give it more time or "
                f"room, then try again: nothing was half-written"
            )
        if isinstance(
            error, psycopg.OperationalError | errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow
        ):
            return LedgerUnavailable(
                f"the ledger at {self._server} cannot be reached ({_one_line(said)}); start it (odf db start) or wait, "
                f"then try again: nothing was half-written"
            )
        return OpenDataFlowError(f"the ledger at {self._server} refused: {_one_line(said)}{hint}")


def _unstorable(what: str) -> str:
    return f"{what} holds a character that cannot be stored (NUL, or half of a surrogate pair); remove it"


def in_database(url: str, name: str) -> str:
    """The same server, another database."""
    return urlsplit(url)._replace(path=f"/{quote(name, safe='')}").geturl()


def with_hosts_in_query(url: str) -> str:
    """Several hosts as SQLAlchemy takes them; libpq takes both."""
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    if "," not in hosts:
        return url
    given = conninfo_to_dict(url)
    query = urlencode({"host": given["host"], "port": given.get("port", 5432)}, safe=",:")
    return f"{parts.scheme}://{login}{at}{parts.path or '/'}?{'&'.join(filter(None, (parts.query, query)))}"


def _server_of(url: str) -> str:
    """Without user and password. An invalid URL is not repeated in the error, because it may hold a password."""
    try:
        parts: dict[str, Any] = conninfo_to_dict(url)
        hosts, ports = (parts.get(name, default).split(",") for name, default in (("host", "localhost"), ("port", "")))
        # libpq takes a single port for all hosts.
        numbers = [int(port or 5432) for port in (ports * len(hosts) if len(ports) == 1 else ports)]
        places = [f"{host or 'localhost'}:{number}" for host, number in zip(hosts, numbers, strict=True)]
    except (psycopg.Error, ValueError):
        raise InvalidInput(
            "the database URL cannot be read; write it as postgresql://user:password@host:port/database, "
            "with special characters percent-encoded"
        ) from None
    return f"{','.join(places)}/{parts.get('dbname', '')}"


def _unless_in(url: str, settings: dict[str, int]) -> dict[str, int]:
    given = conninfo_to_dict(url)
    return {name: value for name, value in settings.items() if name not in given}


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
