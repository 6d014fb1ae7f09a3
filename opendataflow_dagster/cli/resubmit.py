"""`odf resubmit`: run chunks again."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.model.ids import summary

from .connection import open_ledger
from .options import Change, change_options
from .parsing import Moment
from .selection import selected, selection_options

if TYPE_CHECKING:
    from opendataflow_dagster.model.ids import ChunkKey


@click.command()
@selection_options
@click.option("--failed", "all_failed", is_flag=True, help="All failed chunks, or those of the DataSet or Job.")
@click.option("--failed-since", type=Moment(), help="Chunks that failed since this time, or an age such as 6h.")
@click.option("--until", type=Moment(), help="With --failed or --failed-since: chunks that failed before this time.")
@click.option("--other-code", is_flag=True, help="Only READY chunks made by code other than the current.")
@click.option("--downstream", is_flag=True, help="Also resubmit everything that was made from them.")
@change_options
def resubmit(
    change: Change,
    datasetid: str | None,
    chunks: tuple[str, ...],
    jobid: str | None,
    statuses: tuple[str, ...],
    everything: bool,
    all_failed: bool,
    failed_since: datetime | None,
    until: datetime | None,
    other_code: bool,
    downstream: bool,
) -> None:
    """Run chunks again: one, a range, or everything that failed. Producers run before consumers.

    Same as setting the status RESUBMIT in SQL, but records your name and reason. A running chunk loses its claim; a
    chunk on hold is left alone.

    \b
    Example:
      odf resubmit delays 2024-01-03
      odf resubmit delays 2024-01-01..2024-01-31 --downstream
      odf resubmit --failed-since "2024-01-05 02:00" --until "2024-01-05 06:00" --reason "mount was gone"
      odf resubmit --failed --job average --dry-run
      odf resubmit delays 2024-01-01..2024-01-31 --other-code --reason "rounding fixed"
    """
    from opendataflow_dagster.insight.selection import failed_keys, select_failed
    from opendataflow_dagster.protocol.resubmit import resubmit as verb

    with change.ledger() as ledger:
        requested: datetime | None = None
        if all_failed or failed_since:
            if chunks or statuses or everything or other_code:
                raise InvalidInput(
                    "--failed and --failed-since cannot be combined with dataids, --status, --other-code or --all"
                )
            failed = select_failed(ledger, datasetid=datasetid, jobid=jobid, since=failed_since, until=until)
            keys, requested = failed_keys(failed)
        elif until is not None:
            raise InvalidInput("--until requires --failed or --failed-since")
        else:
            keys = selected(
                ledger,
                datasetid=datasetid,
                jobid=jobid,
                chunks=chunks,
                statuses=statuses,
                everything=everything,
                other_code=other_code,
            )
        if not keys:
            change.report({"chunks": [], "held": [], "satisfied": []}, "No failures; nothing to resubmit.")
            return
        _confirm(change, keys, downstream)
        done = verb(
            ledger, keys, by=ledger.actor, reason=change.reason, with_downstream=downstream, requested=requested
        )
    change.report({"chunks": done.chunks, "held": done.held, "satisfied": done.satisfied}, str(done))


def _confirm(change: Change, keys: list[ChunkKey], downstream: bool) -> None:
    if not downstream:
        change.confirm(len(keys), f"resubmit {summary(keys)}")
    elif not change.yes and not change.dry_run:
        from opendataflow_dagster.protocol.resubmit import resubmit as verb

        with open_ledger(rehearsal=True) as rehearsal:
            affected = verb(rehearsal, keys, by="rehearsal", with_downstream=True).chunks
        change.confirm(len(affected), f"resubmit {summary(affected)}")
