"""`odf runs` and `odf history`: what ran, and what happened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .arguments import Moment, job_option, optional_dataset, optional_job
from .options import as_json, open_ledger

_OUTCOMES = {"ENDED": "green", "FAILED": "red", None: "blue"}


@click.command()
@optional_job
@click.option("--running", is_flag=True, help="Only those that run.")
@click.option("--failed", is_flag=True, help="Only those that failed.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="How many, the newest first.")
@as_json
def runs(jobid: str | None, running: bool, failed: bool, limit: int, json_wanted: bool) -> None:
    """The runs of all Jobs, or of one: who, when, how long, with which outcome.

    \b
    Example:
      odf runs
      odf runs average --failed
      odf runs --running --json
    """
    from opendataflow_dagster.insight.runs import find_runs as look

    with open_ledger() as ledger:
        found = look(ledger, jobid=jobid, running=running, failed=failed, count=limit)
    if json_wanted:
        output.print_json({"runs": found})
        return
    if not found:
        output.say("No runs like that.")
        return
    output.table(
        ["run", "job", "outcome", "started", "took", "by", "called there", "holds"],
        [
            [
                str(one.run_id),
                one.jobid,
                (one.outcome or "RUNNING", _OUTCOMES[one.outcome]),
                output.moment(one.started),
                output.span(one.duration),
                one.runner,
                one.external_id or "",
                str(one.holds or ""),
            ]
            for one in found
        ],
        right=["run", "holds"],
    )


@click.command()
@optional_dataset
@click.argument("dataid", required=False)
@job_option
@click.option("--since", type=Moment(), help="Default: the last day. A time, or 3h.")
@click.option("--by", metavar="NAME", help="Only what this person or program did.")
@click.option("--status", "statuses", multiple=True, metavar="WORD", help="Only changes to this status.")
@click.option("--reads", is_flag=True, help="Also who read which chunk (IN rows).")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="How many, the newest first.")
@as_json
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
    """What happened, the newest first: every change of a status, by whom, and why.

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
                raise InvalidInput("the history of one chunk is shown whole; leave --job, --since, --by, --status out")
            key = ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid))
            found = chunk_history(ledger, key, with_reads=reads)[:limit]
        else:
            found = recent_events(
                ledger,
                since=since or datetime.now(UTC) - timedelta(days=1),
                datasetid=datasetid,
                jobid=jobid,
                by=by,
                statuses=[word.upper() for word in statuses],
                with_reads=reads,
                count=limit,
            )
    if json_wanted:
        output.print_json({"events": found})
        return
    if not found:
        output.say("Nothing happened like that; look further back with --since.")
        return
    output.table(
        ["at", "chunk", "job", "change", "by", "reason"],
        [
            [
                output.moment(one.at),
                f"{one.datasetid}/{one.dataid}",
                one.jobid,
                f"{'reads: ' if one.locktype == 'IN' else ''}{one.old_status or '-'} -> {one.new_status or 'gone'}",
                one.actor or one.login,
                one.reason or "",
            ]
            for one in found
        ],
    )
