"""Installs, upgrades and verifies the schema, in one transaction.

- `tables/*.sql` are a baseline and numbered changes. Each is applied once and never edited after its release.
- `routines/*.sql` hold the functions, triggers and comments. When their text differs from what is installed, all of
  them are dropped and created again, and all chunks are evaluated again.
- `roles.sql` is applied at every installation, because a role may be created later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..model.errors import SchemaMismatch
from .database import Ledger, Transaction
from .schema_files import BASELINE, RELEASE_0_1_0, ROUTINES, file_text, tables, texts, wanted
from .settling import settle

# The advisory lock makes concurrent installers wait for each other until the transaction ends. Nobody waits behind an
# installer that itself waits for a forgotten transaction.
_PREPARE = """\
set local lock_timeout = '10s';
set local statement_timeout = 0;
select pg_advisory_xact_lock(hashtext('dataflow'), hashtext('migration'));
do $$
begin
    if to_regclass('dataflow.migration') is null
       and (select r.rolsuper from pg_roles r where r.rolname = current_user) then
        raise exception '% is a superuser, and functions of the schema would have its rights', current_user
            using errcode = 'DF002', hint = 'install with a plain login that owns the database';
    end if;
end
$$;
create schema if not exists dataflow;
create table if not exists dataflow.migration (
    name     text primary key,
    checksum text not null,
    applied  timestamptz not null default now()
);
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaReport:
    applied: tuple[str, ...]
    #: Tables that are not installed, and ROUTINES where they are absent or differ: `odf schema install` brings them.
    missing: tuple[str, ...]
    #: Tables that were made from another file than this version has.
    changed: tuple[str, ...]
    #: Tables of a newer version.
    unknown: tuple[str, ...]
    missing_roles: tuple[str, ...]
    #: The owner of the schema, if it is a superuser.
    superusers: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not (self.missing or self.changed or self.unknown)


def script() -> str:
    """The whole schema as SQL, for an empty database whose administrator installs it by hand."""
    # Names and checksums are ours, of letters and digits.
    recorded = ", ".join(f"('{name}', '{checksum}')" for name, checksum in wanted().items())
    parts = [
        "begin isolation level read committed;",
        _PREPARE,
        file_text("adopt/begin.sql"),
        *(f"-- {name}\n{content}" for name, content in (*tables().items(), *texts("routines").items())),
        f"insert into dataflow.migration (name, checksum) values {recorded};",  # noqa: S608
        file_text("adopt/end.sql"),
        file_text("roles.sql"),
        "commit;",
    ]
    return "\n".join(parts) + "\n"


def install(ledger: Ledger) -> tuple[str, ...]:
    """Apply what is missing, and say what was applied. Safe to run concurrently.

    The tables of an upstream installation become ours with their rows: `adopt_upstream` is then the first in the list.
    """
    with ledger.transaction(any_schema=True) as transaction:
        transaction.run_text(_PREPARE.encode())
        recorded = _recorded(transaction)
        if _is_release_0_1_0(recorded):
            transaction.run("forget_migrations", names=list(RELEASE_0_1_0))
            recorded = {BASELINE: wanted()[BASELINE]}
            _record(transaction, recorded)
        report = _compare(recorded, _existing_roles(transaction))
        _refuse(report)
        applied = _apply(transaction, report.missing, is_upgrade=bool(recorded)) if report.missing else ()
        transaction.run_text(file_text("roles.sql").encode())
    settle(ledger)
    return applied


def _apply(transaction: Transaction, missing: tuple[str, ...], *, is_upgrade: bool) -> tuple[str, ...]:
    adopts = transaction.value("has_upstream_tables")
    if adopts:
        transaction.run_text(file_text("adopt/begin.sql").encode())
    transaction.run_text(file_text("reset.sql").encode())
    for name, content in tables().items():
        if name in missing:
            transaction.run_text(content.encode())
    for content in texts("routines").values():
        transaction.run_text(content.encode())
    _record(transaction, {name: wanted()[name] for name in (*missing, ROUTINES)})
    if adopts:
        transaction.run_text(file_text("adopt/end.sql").encode())
    if is_upgrade:
        transaction.rows("unsettle_all")
    return (*(["adopt_upstream"] if adopts else []), *missing)


def verify(ledger: Ledger) -> SchemaReport:
    """What of the schema is installed. Changes nothing."""
    with ledger.transaction(any_schema=True) as transaction:
        owners = [row["rolname"] for row in transaction.rows("superuser_owner")]
        return _compare(_recorded(transaction), _existing_roles(transaction), owners)


def _compare(recorded: Mapping[str, str], roles: set[str], superusers: Iterable[str] = ()) -> SchemaReport:
    known = wanted()
    unknown = set(recorded) - set(known) - set(RELEASE_0_1_0 if _is_release_0_1_0(recorded) else ())
    all_roles = ("dataflow_reader", "dataflow_operator", "dataflow_admin")
    return SchemaReport(
        applied=tuple(sorted(recorded)),
        missing=tuple(
            name for name in known if name not in recorded or (name == ROUTINES and recorded[name] != known[name])
        ),
        changed=tuple(name for name in tables() if recorded.get(name, known[name]) != known[name]),
        unknown=tuple(sorted(unknown)),
        missing_roles=tuple(role for role in all_roles if role not in roles),
        superusers=tuple(superusers),
    )


def _refuse(report: SchemaReport) -> None:
    if report.unknown:
        raise SchemaMismatch(
            f"the database has schema changes that this version does not know ({', '.join(report.unknown)}); "
            f"upgrade opendataflow-dagster"
        )
    if report.changed:
        raise SchemaMismatch(
            f"the database was installed from an unreleased version ({', '.join(report.changed)} differs); "
            f"use that version, or start with an empty database"
        )


def _is_release_0_1_0(recorded: Mapping[str, str]) -> bool:
    return all(recorded.get(name) == checksum for name, checksum in RELEASE_0_1_0.items())


def _recorded(transaction: Transaction) -> dict[str, str]:
    if not transaction.value("has_migrations"):
        return {}
    return {row["name"]: row["checksum"] for row in transaction.rows("recorded_migrations")}


def _record(transaction: Transaction, checksums: Mapping[str, str]) -> None:
    transaction.run("record_migrations", names=list(checksums), checksums=list(checksums.values()))


def _existing_roles(transaction: Transaction) -> set[str]:
    return {row["rolname"] for row in transaction.rows("dataflow_roles")}
