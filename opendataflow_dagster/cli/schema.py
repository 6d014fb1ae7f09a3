"""`odf schema`: the ledger's tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.database import Ledger

as_json = click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")


@click.group()
def schema() -> None:
    """The ledger's schema `dataflow`: install it, verify it, or print it.

    \b
    Example:
      odf schema install
      odf schema sql > dataflow.sql
    """


@schema.command()
@as_json
def install(json_wanted: bool) -> None:
    """Install or upgrade; nothing happens when all is there. Any number of processes may do it at once.

    \b
    Example:
      odf schema install
    """
    from opendataflow_dagster.ledger import schema as ledger_schema

    with _ledger() as ledger:
        applied = ledger_schema.install(ledger)
    if json_wanted:
        click.echo(json.dumps({"applied": list(applied)}, indent=2))
    else:
        click.echo(f"Applied {', '.join(applied)}." if applied else "The schema is up to date.")


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

    with _ledger() as ledger:
        report = ledger_schema.verify(ledger)
    if json_wanted:
        click.echo(json.dumps({"ok": report.ok, **asdict(report)}, indent=2))
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
    click.get_current_context().exit(0 if report.ok else 1)


@schema.command()
def sql() -> None:
    """Print the whole schema as SQL, without a database.

    \b
    Example:
      odf schema sql | psql "$URL_OF_AN_EMPTY_DATABASE"
    """
    from opendataflow_dagster.ledger import schema as ledger_schema

    click.echo(ledger_schema.script(), nl=False)


@contextmanager
def _ledger() -> Iterator[Ledger]:
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.ledger.settings import database_url

    with Ledger(database_url()) as ledger:
        yield ledger
