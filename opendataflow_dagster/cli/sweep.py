"""`odf sweep`: remove files of old versions and failed attempts."""

from __future__ import annotations

from datetime import timedelta

import click

from . import output
from .arguments import dataset_argument
from .options import Change, change_options
from .parsing import Number

# About three centuries: within the range of dates of Postgres and Python.
_DAYS = Number(max=100_000)


@click.command()
@dataset_argument
@click.option(
    "--keep-versions", type=click.IntRange(max=1_000_000), metavar="N", help="Keep the newest N versions of each chunk."
)
@click.option("--keep-days", type=_DAYS, metavar="DAYS", help="Keep versions that were current within this many days.")
@click.option(
    "--failed-days", type=_DAYS, default=7.0, show_default=True, metavar="DAYS", help="Keep failed attempts this long."
)
@change_options
def sweep(
    change: Change, datasetid: str, keep_versions: int | None, keep_days: float | None, failed_days: float
) -> None:
    """Remove the files of old versions and failed attempts.

    Without --keep-versions or --keep-days, all versions are kept. Current versions, versions that a running chunk
    reads, and folders that the ledger does not know are always kept. Manifests and history are kept permanently.

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
    with change.ledger() as ledger:
        if not change.yes and not change.dry_run:
            preview = verb(ledger, datasetid, retention, by=ledger.actor, dry_run=True)
            folders = len(preview.versions) + len(preview.orphans)
            change.confirm(folders, f"remove {folders:,} folders of {datasetid}")
        swept = verb(ledger, datasetid, retention, by=ledger.actor, dry_run=change.dry_run)
    change.report(output.jsonable(swept), str(swept))
