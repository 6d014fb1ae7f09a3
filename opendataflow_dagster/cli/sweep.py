"""`odf sweep`: remove the files that nobody needs any more."""

from __future__ import annotations

from datetime import timedelta

import click

from . import output
from .options import Act, acts


@click.command()
@click.argument("datasetid", metavar="DATASET")
@click.option("--keep-versions", type=int, metavar="N", help="The newest N versions of each chunk stay.")
@click.option("--keep-days", type=float, metavar="DAYS", help="What was current within so many days stays.")
@click.option("--failed-days", type=float, default=7.0, show_default=True, metavar="DAYS", help="Failed attempts stay.")
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
        done = verb(ledger, datasetid, retention, by=act.by or ledger.actor, dry_run=act.dry_run)
    act.report(output.jsonable(done), str(done))
