"""`odf cancel`: stop running chunks, or all chunks of a run."""

from __future__ import annotations

from typing import Any

import click

from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.model.ids import summary

from .options import Change, change_options
from .selection import change_selected, selection_options


@click.command()
@selection_options
@click.option("--run", "run_id", type=click.IntRange(min=1), help="Cancel everything that this run holds.")
@change_options
def cancel(change: Change, run_id: int | None, **selection: Any) -> None:
    """Cancel running chunks. They become FAILED and can be resubmitted; their processes can no longer publish.

    \b
    Example:
      odf cancel delays 2024-01-14
      odf cancel --run 17 --reason "wrong release"
    """
    from opendataflow_dagster.insight.runs import find_run
    from opendataflow_dagster.protocol.cancel import cancel as verb
    from opendataflow_dagster.protocol.cancel import cancel_run

    if run_id is None:
        change_selected(change, verb, "Cancelled", "was not running", selection)
        return
    if any(selection.values()):
        raise InvalidInput("--run cannot be combined with chunks, --job, --status or --all")
    with change.ledger() as ledger:
        run = find_run(ledger, run_id)
        change.confirm(run.holds, f"cancel run {run_id} of {run.jobid}, which holds {run.holds:,} chunks")
        cancelled = cancel_run(ledger, run_id, by=ledger.actor, reason=change.reason)
    held = f", which held {summary(cancelled)}" if cancelled else ", which held no chunks"
    change.report({"chunks": cancelled, "run_id": run_id}, f"Cancelled run {run_id}{held}.")
