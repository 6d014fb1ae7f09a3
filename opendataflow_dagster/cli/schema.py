"""`odf schema`: the ledger's tables."""

from __future__ import annotations

import click

from .options import answer, as_json, open_ledger
from .output import print_json


@click.group()
def schema() -> None:
    """The ledger's schema `dataflow`: install it, verify it, or print it.

    \b
    Example:
      odf schema install
      odf schema sql > dataflow.sql
    """


@schema.command()
@click.option("--dry-run", is_flag=True, help="Say what would be applied, and change nothing.")
@as_json
def install(dry_run: bool, json_wanted: bool) -> None:
    """Install or upgrade; nothing happens when all is there. Any number of processes may do it at once.

    \b
    Example:
      odf schema install --dry-run
      odf schema install
    """
    from opendataflow_dagster.ledger import schema as ledger_schema

    with open_ledger(rehearsal=dry_run) as ledger:
        applied = ledger_schema.install(ledger)
    if json_wanted:
        print_json({"dry_run": dry_run, "applied": applied})
    else:
        click.echo(
            f"{'Would apply' if dry_run else 'Applied'} {', '.join(applied)}."
            if applied
            else "The schema is up to date."
        )


@schema.command()
@as_json
def verify(json_wanted: bool) -> None:
    """Compare the database with this version; exit with 1 when they differ. Changes nothing.

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
        for what, names, step in (
            ("missing", report.missing, "run `odf schema install`"),
            ("other than in this version", report.changed, "install the version that made this database"),
            ("unknown to this version", report.unknown, "install the newer version"),
            ("missing roles", report.missing_roles, "let an administrator run `odf schema sql | psql`"),
        ):
            if names:
                click.echo(f"{what}: {', '.join(names)}; {step}")
        if report.ok:
            click.echo(f"The schema is whole ({len(report.applied)} migrations).")
    answer(report.ok)


@schema.command()
def sql() -> None:
    """Print the whole schema as SQL, without a database.

    \b
    Example:
      odf schema sql | psql "$URL_OF_AN_EMPTY_DATABASE"
    """
    from opendataflow_dagster.ledger import schema as ledger_schema

    click.echo(ledger_schema.script(), nl=False)
