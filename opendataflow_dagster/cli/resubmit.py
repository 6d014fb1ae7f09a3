"""`odf resubmit`: the one act of recovery."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput

from .arguments import Moment
from .options import Act, acts, open_ledger
from .selection import chooses, chosen, spoken

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.model.ids import ChunkKey
    from opendataflow_dagster.protocol.resubmit import Resubmitted


@click.command()
@chooses
@click.option("--failed", "all_failed", is_flag=True, help="All that failed: everywhere, or of the DataSet or Job.")
@click.option("--failed-since", type=Moment(), help="All that failed since then: a time, or 6h.")
@click.option("--until", type=Moment(), help="With --failed or --failed-since: what failed before.")
@click.option("--downstream", is_flag=True, help="Also everything that was made from them.")
@acts
def resubmit(
    act: Act,
    datasetid: str | None,
    chunks: tuple[str, ...],
    jobid: str | None,
    statuses: tuple[str, ...],
    everything: bool,
    all_failed: bool,
    failed_since: datetime | None,
    until: datetime | None,
    downstream: bool,
) -> None:
    """Run chunks again: one, a range, or all that failed in an outage. Producers run before consumers, by themselves.

    The same as setting the status RESUBMIT in SQL, with your name and reason. A running chunk's claim is revoked; a
    chunk on hold stays.

    \b
    Example:
      odf resubmit delays 2024-01-03
      odf resubmit delays 2024-01-01..2024-01-31 --downstream
      odf resubmit --failed-since "2024-01-05 02:00" --until "2024-01-05 06:00" --reason "mount was gone"
      odf resubmit --failed --job average --dry-run
    """
    with act.ledger() as ledger:
        if all_failed or failed_since:
            if chunks or statuses or everything:
                raise InvalidInput("--failed takes a DataSet or --job, and no chunks; name chunks without --failed")
            keys, requested = _failed(ledger, datasetid, jobid, failed_since, until)
        else:
            if until is not None:
                raise InvalidInput("--until goes with --failed or --failed-since; add one of them")
            keys, requested = (
                chosen(
                    ledger, datasetid=datasetid, jobid=jobid, chunks=chunks, statuses=statuses, everything=everything
                ),
                None,
            )
        if not keys:
            act.report({"chunks": [], "held": [], "satisfied": []}, "Nothing failed, so there is nothing to resubmit.")
            return
        _confirm(act, keys, downstream)
        from opendataflow_dagster.protocol.resubmit import resubmit as verb

        done = verb(
            ledger,
            keys,
            by=ledger.actor,
            reason=act.reason,
            with_downstream=downstream,
            requested=requested,
        )
    act.report({"chunks": done.chunks, "held": done.held, "satisfied": done.satisfied}, _sentence(done))


def _failed(
    ledger: Ledger, datasetid: str | None, jobid: str | None, since: datetime | None, until: datetime | None
) -> tuple[list[ChunkKey], datetime | None]:
    """And the moment of the last failure: who became READY after that has what is asked for."""
    from opendataflow_dagster.insight.selection import select_failed
    from opendataflow_dagster.model.ids import ChunkKey

    found = select_failed(ledger, datasetid=datasetid, jobid=jobid, since=since, until=until)
    keys = [ChunkKey(datasetid=one.datasetid, dataid=one.dataid) for one in found]
    return keys, max((one.modified for one in found), default=None)


def _confirm(act: Act, keys: list[ChunkKey], downstream: bool) -> None:
    if not downstream:
        act.confirm(len(keys), f"resubmit {spoken(keys)}")
    elif not act.yes and not act.dry_run:
        from opendataflow_dagster.protocol.resubmit import resubmit as verb

        with open_ledger(rehearsal=True) as rehearsal:
            all_of_them = verb(rehearsal, keys, by="rehearsal", with_downstream=True).chunks
        act.confirm(len(all_of_them), f"resubmit {spoken(all_of_them)}")


def _sentence(done: Resubmitted) -> str:
    parts = [f"Resubmitted {spoken(done.chunks)}." if done.chunks else "Nothing was to be resubmitted."]
    if done.held:
        parts.append(f"On hold, and left so: {spoken(done.held)}; unhold first.")
    if done.satisfied:
        parts.append(f"RESUBMIT already, or READY since: {spoken(done.satisfied)}.")
    return " ".join(parts)
