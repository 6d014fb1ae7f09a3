"""`odf plan`: what would run, and why the rest would not."""

from __future__ import annotations

from collections import Counter

import click

from . import output
from .arguments import chunks_argument, job_argument
from .options import Change, change_options
from .other_code import ranges_to_json, show_ranges

_STYLES = {
    "RUN": "green",
    "WAIT": "yellow",
    "BLOCKED": "red",
    "RUNNING": "blue",
    "NOTHING": "bright_black",
    "PERSON": "magenta",
}


@click.command()
@job_argument
@chunks_argument
@click.option("--apply", is_flag=True, help="Create the chunks that do not exist yet, as PENDING.")
@change_options
def plan(change: Change, jobid: str, chunks: tuple[str, ...], apply: bool) -> None:
    """Show what a Job would do with each chunk, and why, in the order in which claims take them.

    \b
    RUN      all five answers are yes: the next claim takes it
    WAIT     an input is not READY
    BLOCKED  another of the five answers is no
    RUNNING  in progress
    NOTHING  already produced; resubmit it to produce it again
    PERSON   failed or on hold: needs an operator

    Also lists the READY chunks made by code other than the current. They run again only if you resubmit them.

    \b
    Example:
      odf plan average
      odf plan average 2024-01-01..2024-01-31
      odf plan average 2024-02-01..2024-02-29 --apply --reason "backfill of February"
    """
    from opendataflow_dagster.insight.plan import plan_job
    from opendataflow_dagster.protocol.announce import announce_pending

    with change.ledger() as ledger:
        job_plan = plan_job(ledger, jobid, chunks)
        planned = job_plan.chunks
        missing = [chunk.dataid for chunk in planned if not chunk.planned]
        created = 0
        if apply:
            change.confirm(len(missing), f"create {len(missing):,} chunks of job {jobid}")
            created = announce_pending(ledger, jobid, missing, by=ledger.actor)
    if change.json_wanted:
        output.print_json(
            {
                "dry_run": change.dry_run or not apply,
                "announced": created,
                "chunks": planned,
                "other_code": ranges_to_json(job_plan.other_code),
            }
        )
        return
    if not planned:
        output.say(f"No chunk of job {jobid} waits to be made; to plan others, name them: odf plan {jobid} DATAID")
        show_ranges(job_plan.other_code)
        return
    counts = Counter(chunk.decision for chunk in planned)
    output.heading(f"{jobid}: " + ", ".join(f"{count:,} {decision}" for decision, count in counts.most_common()))
    output.table(
        ["dataid", "decision", "reason", ""],
        [
            [chunk.dataid, (chunk.decision, _STYLES[chunk.decision]), chunk.reason, "" if chunk.planned else "new"]
            for chunk in planned
        ],
    )
    if apply:
        output.say(f"{'Would create' if change.dry_run else 'Created'} {output.counted(created, 'chunk')}.")
    elif missing:
        output.say(f"New: {output.counted(len(missing), 'chunk')}; create with --apply.")
    show_ranges(job_plan.other_code)
