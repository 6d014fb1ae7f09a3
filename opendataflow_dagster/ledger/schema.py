"""Installs, upgrades and verifies the schema: ordered .sql files, each applied once, all in one transaction."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from ..model.errors import SchemaMismatch
from .database import Ledger, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaReport:
    applied: tuple[str, ...]
    missing: tuple[str, ...]
    changed: tuple[str, ...]
    unknown: tuple[str, ...]
    missing_roles: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not (self.missing or self.changed or self.unknown)


def migrations() -> tuple[Migration, ...]:
    folder = files(__package__).joinpath("migrations")
    found = [Migration(name=one.name.removesuffix(".sql"), text=one.read_text()) for one in folder.iterdir()]
    return tuple(sorted((one for one in found if one.name[:4].isdigit()), key=lambda one: one.name))


def script() -> str:
    """The whole schema as SQL, for a database whose administrator installs it by hand."""
    # Names and checksums are our own, of letters and digits.
    recorded = ", ".join(f"('{one.name}', '{one.checksum}')" for one in migrations())
    parts = [
        "begin;",
        _PREPARE,
        _text("adopt_begin"),
        *(f"-- {one.name}\n{one.text}" for one in migrations()),
        f"insert into dataflow.migration (name, checksum) values {recorded};",  # noqa: S608
        _text("adopt_end"),
        _text("roles"),
        "commit;",
    ]
    return "\n".join(parts) + "\n"


def install(ledger: Ledger, upto: str | None = None) -> tuple[str, ...]:
    """Apply what is missing (as far as `upto`), and say what was applied. Any number may do so at once.

    Upstream's tables, if there are any, become ours with their rows: `adopt_upstream` is the first that was applied.
    """
    if upto is not None and upto not in {one.name for one in migrations()}:
        raise SchemaMismatch(
            f"there is no migration {upto}; choose one of {', '.join(one.name for one in migrations())}"
        )
    with ledger.transaction() as transaction:
        transaction.run_text(_PREPARE.encode())
        report = _report(transaction)
        _refuse(report)
        whole = upto in (None, migrations()[-1].name)
        adopts = whole and transaction.value("has_upstream_tables")
        applied = ["adopt_upstream"] if adopts else []
        if adopts:
            transaction.run_text(_text("adopt_begin").encode())
        for migration in migrations():
            if migration.name in report.missing:
                transaction.run_text(migration.text.encode())
                transaction.run("record_migration", name=migration.name, checksum=migration.checksum)
                applied.append(migration.name)
            if migration.name == upto:
                break
        if adopts:
            transaction.run_text(_text("adopt_end").encode())
        if whole:
            transaction.run_text(_text("roles").encode())
        return tuple(applied)


def verify(ledger: Ledger) -> SchemaReport:
    """What of the schema is there. Changes nothing."""
    with ledger.transaction() as transaction:
        if not transaction.value("has_migrations"):
            return _compare({}, _existing_roles(transaction))
        return _report(transaction)


# The lock makes concurrent installers wait for each other; it goes with the transaction.
_PREPARE = """\
select pg_advisory_xact_lock(hashtext('dataflow'), hashtext('migration'));
create schema if not exists dataflow;
create table if not exists dataflow.migration (
    name     text primary key,
    checksum text not null,
    applied  timestamptz not null default now()
);
"""


def _report(transaction: Transaction) -> SchemaReport:
    recorded = {row["name"]: row["checksum"] for row in transaction.rows("recorded_migrations")}
    return _compare(recorded, _existing_roles(transaction))


def _existing_roles(transaction: Transaction) -> set[str]:
    return {row["rolname"] for row in transaction.rows("dataflow_roles")}


def _text(name: str) -> str:
    """A file that is no migration, because it is run at each installation."""
    return files(__package__).joinpath("migrations", f"{name}.sql").read_text()


def _compare(recorded: dict[str, str], roles: set[str]) -> SchemaReport:
    known = {one.name: one.checksum for one in migrations()}
    wanted = ("dataflow_reader", "dataflow_operator", "dataflow_admin")
    return SchemaReport(
        applied=tuple(sorted(recorded)),
        missing=tuple(name for name in known if name not in recorded),
        changed=tuple(name for name in known if recorded.get(name, known[name]) != known[name]),
        unknown=tuple(sorted(set(recorded) - set(known))),
        missing_roles=tuple(role for role in wanted if role not in roles),
    )


def _refuse(report: SchemaReport) -> None:
    if report.unknown:
        raise SchemaMismatch(
            f"the database has migrations that this version does not know ({', '.join(report.unknown)}); "
            f"install the newer opendataflow-dagster"
        )
    if report.changed:
        raise SchemaMismatch(
            f"the database was made from other files than this version has ({', '.join(report.changed)}); "
            f"install the version that made it, or start with an empty database"
        )
