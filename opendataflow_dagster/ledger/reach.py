"""Is a Postgres there, and does it let us in? One real connection gives the answer; nothing here raises."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import Enum, auto

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 5


class Outcome(Enum):
    READY = auto()
    WRONG_PASSWORD = auto()
    NO_DATABASE = auto()
    SILENT = auto()


@dataclass(frozen=True, kw_only=True)
class Reach:
    outcome: Outcome
    version: str | None = None
    reason: str | None = None


def reach_url(url: str) -> Reach:
    """The reason never holds the password, nor a part of it."""
    try:
        password = conninfo_to_dict(url).get("password")
    except psycopg.Error:
        # libpq quotes the piece it cannot read, and that piece may be the password.
        return Reach(outcome=Outcome.SILENT, reason="libpq cannot read the url")
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            return _ready(connection)
    except psycopg.Error as error:
        return _refused(error, str(password or ""))


def reach_loopback(*, port: int, user: str, password: str, database: str) -> Reach:
    try:
        with _loopback(port, user, password, database) as connection:
            return _ready(connection)
    except psycopg.Error as error:
        return _refused(error, password)


def create_database(*, port: int, user: str, password: str, database: str) -> Reach:
    try:
        with _loopback(port, user, password, "postgres") as connection:
            # Two starters may both have seen that it is missing.
            with contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
            return _ready(connection)
    except psycopg.Error as error:
        return _refused(error, password)


def _loopback(port: int, user: str, password: str, database: str) -> psycopg.Connection:
    """Every setting that a PG* variable could bend is given. `require_auth` makes the server prove that it
    knows the password too, so a stranger on our port is neither believed nor told anything."""
    return psycopg.connect(
        host=LOOPBACK,
        hostaddr=LOOPBACK,
        port=port,
        user=user,
        password=password,
        dbname=database,
        connect_timeout=CONNECT_SECONDS,
        sslmode="disable",
        gssencmode="disable",
        require_auth="scram-sha-256",
        options="",
        application_name="odf",
        autocommit=True,
    )


def _ready(connection: psycopg.Connection) -> Reach:
    major, minor = divmod(connection.info.server_version, 10_000)
    return Reach(outcome=Outcome.READY, version=f"{major}.{minor}")


def _refused(error: psycopg.Error, password: str) -> Reach:
    """libpq gives no SQLSTATE for a refused connection, only the text; ours is English (lc_messages=C)."""
    reason = " ".join(str(error).split())
    if password:
        reason = reason.replace(password, "***")
    if "too many clients" in reason or "remaining connection slots" in reason:
        return Reach(outcome=Outcome.READY, reason=reason)
    if "password authentication failed" in reason:
        return Reach(outcome=Outcome.WRONG_PASSWORD, reason=reason)
    if "database" in reason and "does not exist" in reason:
        return Reach(outcome=Outcome.NO_DATABASE, reason=reason)
    return Reach(outcome=Outcome.SILENT, reason=reason)
