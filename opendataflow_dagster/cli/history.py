"""`odf history`: every status change, by whom, and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .arguments import job_option, optional_dataset
from .connection import open_ledger
from .options import json_option
from .parsing import Moment


@click.command()
@optional_dataset
@click.argument("dataid", required=False)
@job_option
@click.option("--since", type=Moment(), help="Changes since this time, or an age such as 3h. Default: 1d.")
@click.option("--by", metavar="NAME", help="Only changes by this person or program.")
@click.option("--status", "statuses", multiple=True, metavar="STATUS", help="Only changes to this status.")
@click.option("--reads", is_flag=True, help="Include reads by consumers (IN rows).")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="Maximum number of changes.")
@json_option
def history(
    datasetid: str | None,
    dataid: str | None,
    jobid: str | None,
    since: datetime | None,
    by: str | None,
    statuses: tuple[str, ...],
    reads: bool,
    limit: int,
    json_wanted: bool,
) -> None:
    """Show status changes, newest first: who made them, and why.

    \b
    Example:
      odf history
      odf history delays 2024-01-03
      odf history --by ada --since 2d
      odf history --status FAILED --json
    """
    from opendataflow_dagster.insight.history import chunk_history, recent_events
    from opendataflow_dagster.model.ids import ChunkKey, data_id, dataset_id

    with open_ledger() as ledger:
        if datasetid is not None and dataid is not None:
            if jobid or since or by or statuses:
                raise InvalidInput("--job, --since, --by and --status cannot be combined with a dataid")
            key = ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid))
            events = chunk_history(ledger, key, with_reads=reads)[:limit]
        else:
            events = recent_events(
                ledger,
                since=since or datetime.now(UTC) - timedelta(days=1),
                datasetid=datasetid,
                jobid=jobid,
                by=by,
                statuses=[status.upper() for status in statuses] or None,
                with_reads=reads,
                count=limit,
            )
    if json_wanted:
        output.print_json({"events": events})
    elif not events:
        output.say("No matching changes; look further back with --since.")
    else:
        output.table(
            ["at", "chunk", "job", "change", "by", "reason"],
            [
                [
                    output.moment(event.at),
                    f"{event.datasetid}/{event.dataid}",
                    event.jobid,
                    f"{'reads: ' if event.locktype == 'IN' else ''}{transition(event.old_status, event.new_status)}",
                    event.actor or event.login,
                    event.reason or "",
                ]
                for event in events
            ],
        )


def transition(old_status: str | None, new_status: str | None) -> str:
    return f"{old_status or '-'} -> {new_status or 'deleted'}"
