"""`odf schema`: the tables of the ledger."""

from __future__ import annotations

import click

from .connection import open_ledger
from .groups import LazyGroup
from .options import exit_with_answer, json_option
from .output import print_json, print_result, write, write_exactly


@click.group(cls=LazyGroup)
def schema() -> None:
    """Manage the database schema `dataflow` of the ledger.

    \b
    Example:
      odf schema install
      odf schema sql > dataflow.sql
    """


@schema.command()
@click.option("--dry-run", is_flag=True, help="Show what would be applied; change nothing.")
@json_option
def install(dry_run: bool, json_wanted: bool) -> None:
    """Install or upgrade the schema. Does nothing if it is up to date; safe to run concurrently.

    \b
    Example:
      odf schema install --dry-run
      odf schema install
    """
    from opendataflow_dagster.ledger import schema as ledger_schema

    with open_ledger(rehearsal=dry_run) as ledger:
        applied = ledger_schema.install(ledger)
    verb = "Would apply" if dry_run else "Applied"
    text = f"{verb} {', '.join(applied)}." if applied else "The schema is up to date."
    print_result(json_wanted, {"dry_run": dry_run, "applied": applied}, text)


@schema.command()
@json_option
def verify(json_wanted: bool) -> None:
    """Compare the database with this version of odf. Exits with 1 if they differ; changes nothing.

    \b
    Example:
      odf schema verify --json
    """
    from dataclasses import asdict

    from opendataflow_dagster.ledger import schema as ledger_schema

    with open_ledger() as ledger:
        report = ledger_schema.verify(ledger)
    if json_wanted:
        print_json({"ok": report.ok, **asdict(report)})
    else:
        for problem, names, step in (
            ("missing", report.missing, "run: odf schema install"),
            ("different from this version", report.changed, "use the version of odf that created this database"),
            ("unknown to this version", report.unknown, "upgrade odf"),
            ("missing roles", report.missing_roles, "ask an administrator to run: odf schema sql | psql"),
            ("owned by a superuser", report.superusers, "restore a dump of it with a plain login"),
        ):
            if names:
                write(f"{problem}: {', '.join(names)}; {step}")
        if report.ok:
            write(f"The schema is complete ({len(report.applied)} migrations).")
    exit_with_answer(report.ok)


@schema.command()
def sql() -> None:
    """Print the schema as SQL. Needs no database.

    \b
    Example:
      odf schema sql | psql "$URL_OF_AN_EMPTY_DATABASE"
    """
    from opendataflow_dagster.ledger import schema as ledger_schema

    write_exactly(ledger_schema.script(), nl=False)
