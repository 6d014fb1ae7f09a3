"""`odf plan`: what would run, and why not the rest."""

from __future__ import annotations

from collections import Counter

import click

from . import output
from .arguments import job_argument, some_chunks
from .options import Act, acts

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
@some_chunks
@click.option("--apply", is_flag=True, help="Announce the chunks that nobody has asked for yet: they become PENDING.")
@acts
def plan(act: Act, jobid: str, chunks: tuple[str, ...], apply: bool) -> None:
    """What would run? For each chunk of a Job the decision and the reason, in the order in which claims take them.

    \b
    RUN      five yes: the next claim takes it
    WAIT     an input is not READY
    BLOCKED  another of the five answers is a no
    RUNNING  somebody makes it
    NOTHING  it is there; resubmit it to make it anew
    PERSON   it failed or is on hold: a person must act

    \b
    Example:
      odf plan average
      odf plan average 2024-01-01..2024-01-31
      odf plan average 2024-02-01..2024-02-29 --apply --reason "backfill of February"
    """
    from opendataflow_dagster.insight.plan import plan_job
    from opendataflow_dagster.protocol.announce import announce_pending

    with act.ledger() as ledger:
        found = plan_job(ledger, jobid, chunks)
        unplanned = [one.dataid for one in found if not one.planned]
        announced = 0
        if apply:
            act.confirm(len(unplanned), f"announce {len(unplanned):,} chunks of {jobid}")
            announced = announce_pending(ledger, jobid, unplanned, by=ledger.actor)
    if act.json_wanted:
        output.print_json({"dry_run": act.dry_run or not apply, "announced": announced, "chunks": found})
        return
    if not found:
        output.say(f"Job {jobid} has no unfinished chunks; name some to see what would happen: odf plan {jobid} DATAID")
        return
    counts = Counter(one.decision for one in found)
    output.heading(f"{jobid}: " + ", ".join(f"{count:,} {decision}" for decision, count in counts.most_common()))
    output.table(
        ["dataid", "decision", "reason", ""],
        [
            [one.dataid, (one.decision, _STYLES[one.decision]), one.reason, "" if one.planned else "not announced"]
            for one in found
        ],
    )
    if apply:
        output.say(f"{'Would announce' if act.dry_run else 'Announced'} {output.counted(announced, 'chunk')}.")
    elif unplanned:
        output.say(f"{len(unplanned):,} of them are not announced; --apply does that.")
