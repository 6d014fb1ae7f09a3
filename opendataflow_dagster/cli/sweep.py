"""`odf sweep`: remove the files that nobody needs any more."""

from __future__ import annotations

from datetime import timedelta

import click

from . import output
from .arguments import Number
from .options import Act, acts

# Three centuries; Postgres and Python can still reckon with that.
_DAYS = Number(max=100_000)


@click.command()
@click.argument("datasetid", metavar="DATASET")
@click.option(
    "--keep-versions", type=click.IntRange(max=1_000_000), metavar="N", help="The newest N versions of each chunk stay."
)
@click.option("--keep-days", type=_DAYS, metavar="DAYS", help="What was current within so many days stays.")
@click.option("--failed-days", type=_DAYS, default=7.0, show_default=True, metavar="DAYS", help="Failed attempts stay.")
@acts
def sweep(act: Act, datasetid: str, keep_versions: int | None, keep_days: float | None, failed_days: float) -> None:
    """Remove the files of old versions, and of attempts that did not become one.

    Without --keep-versions and --keep-days every version stays. The current version, what a running chunk reads, and
    folders that this ledger does not know stay in any case. Their manifests and history stay for ever.

    \b
    Example:
      odf sweep delays --keep-versions 3 --keep-days 30 --dry-run
      odf sweep delays --keep-versions 1 --json
    """
    from opendataflow_dagster.model.retention import Retention
    from opendataflow_dagster.protocol.sweep import sweep as verb

    retention = Retention(
        versions=keep_versions,
        time=None if keep_days is None else timedelta(days=keep_days),
        failed=timedelta(days=failed_days),
    )
    with act.ledger() as ledger:
        if not act.yes and not act.dry_run:
            would = verb(ledger, datasetid, retention, by=ledger.actor, dry_run=True)
            folders = len(would.versions) + len(would.orphans)
            act.confirm(folders, f"remove the files of {folders:,} folders of {datasetid}")
        done = verb(ledger, datasetid, retention, by=ledger.actor, dry_run=act.dry_run)
    act.report(output.jsonable(done), str(done))
