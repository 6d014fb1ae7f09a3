"""`odf why`: what keeps a Job, a chunk, or everything from running?"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .arguments import Moment, optional_job
from .options import answer, as_json, open_ledger

if TYPE_CHECKING:
    from opendataflow_dagster.insight.causes import Cause
    from opendataflow_dagster.insight.why import WhyChunk, WhyJob
    from opendataflow_dagster.ledger.registry import Room


@click.command()
@optional_job
@click.argument("dataid", required=False)
@click.option("--stored", is_flag=True, help="The newest stored answers, instead of asking now.")
@click.option("--failed", "all_failed", is_flag=True, help="All that failed, of all Jobs or of one, by cause.")
@click.option("--since", type=Moment(), help="With --failed: only what failed since then, a time or 3h.")
@click.option("--until", type=Moment(), help="With --failed: only what failed before.")
@as_json
def why(
    jobid: str | None,
    dataid: str | None,
    stored: bool,
    all_failed: bool,
    since: datetime | None,
    until: datetime | None,
    json_wanted: bool,
) -> None:
    """Why does it not run? The five answers for a chunk; the obstacles of a Job; or all failures, grouped by cause.

    Exits with 0 when nothing stands in the way, with 1 when something does.

    \b
    Example:
      odf why --failed
      odf why --failed --since 6h --json
      odf why average
      odf why average 2024-01-03
      odf why average 2024-01-03 --stored
    """
    if not all_failed and (since or until):
        raise InvalidInput("--since and --until go with --failed; add it, or leave them out")
    if stored and dataid is None:
        raise InvalidInput("--stored goes with one chunk; name it: odf why JOB DATAID --stored")
    if all_failed:
        if dataid is not None:
            raise InvalidInput("with --failed give no dataid; leave it out, or ask: odf why JOB DATAID")
        _failures(jobid, since, until, json_wanted)
    elif jobid is None:
        raise InvalidInput("name a Job, or ask for all failures: odf why --failed")
    elif dataid is None:
        _of_job(jobid, json_wanted)
    else:
        _of_chunk(jobid, dataid, stored, json_wanted)


def _failures(jobid: str | None, since: datetime | None, until: datetime | None, json_wanted: bool) -> None:
    from opendataflow_dagster.insight.causes import group_by_cause
    from opendataflow_dagster.insight.selection import select_failed

    with open_ledger() as ledger:
        chunks = select_failed(ledger, jobid=jobid, since=since, until=until)
    found = group_by_cause(chunks)
    if json_wanted:
        output.print_json({"failed": len(chunks), "causes": found})
    elif not chunks:
        output.say("Nothing failed.")
    else:
        output.heading(f"{output.counted(len(chunks), 'chunk')} failed, of {output.counted(len(found), 'cause')}")
        show_causes(found)
        again = _resubmit(jobid, since, until)
        output.say(f"When the cause is repaired: {again} (with --dry-run first, to see what would run).")
    answer(not chunks)


def _resubmit(jobid: str | None, since: datetime | None, until: datetime | None) -> str:
    """What runs again exactly what was shown."""
    words = ["odf", "resubmit", *(["--failed-since", _typed(since)] if since else ["--failed"])]
    words += ["--until", _typed(until)] if until else []
    words += ["--job", jobid] if jobid else []
    return shlex.join(words)


def _typed(at: datetime) -> str:
    return at.astimezone().replace(tzinfo=None).isoformat(" ")


def show_causes(found: list[Cause]) -> None:
    now = datetime.now(UTC)
    output.table(
        ["chunks", "cause", "jobs", "first", "last", "for example"],
        [
            [
                f"{one.count:,}",
                (one.cause, "bold"),
                one.jobs[0] if len(one.jobs) == 1 else f"{len(one.jobs):,}",
                output.moment(one.first, now=now),
                f"{output.span(now - one.last)} ago",
                f"{one.example}: {one.reason}",
            ]
            for one in found
        ],
        right=["chunks"],
    )


def _of_job(jobid: str, json_wanted: bool) -> None:
    from opendataflow_dagster.insight.why import why_job

    with open_ledger() as ledger:
        found = why_job(ledger, jobid)
    if json_wanted:
        output.print_json(found)
    else:
        _show_job(found)
    answer(not found.obstacles and not found.failures and found.room.free != 0)


def _show_job(found: WhyJob) -> None:
    output.heading(f"job {found.jobid}: {output.counted(found.runnable, 'chunk')} can run now")
    limits(found.jobid, found.room)
    if found.obstacles:
        more = "" if found.asked == found.waiting else f" (of {found.waiting:,}, the first {found.asked:,} were asked)"
        output.heading(f"\nRefused, waiting, or held{more}")
        output.table(
            ["chunks", "code", "because", "for example"],
            [[f"{one.count:,}", (one.code, "red"), one.reason, one.example] for one in found.obstacles],
            right=["chunks"],
        )
    if found.failures:
        output.heading("\nFailed")
        show_causes(list(found.failures))
    if not found.obstacles and not found.failures and found.room.free != 0:
        output.say("Nothing stands in its way.")


def _of_chunk(jobid: str, dataid: str, stored: bool, json_wanted: bool) -> None:
    from opendataflow_dagster.insight.why import why_chunk as ask

    from .story import answers

    with open_ledger() as ledger:
        found = ask(ledger, jobid, dataid, stored=stored)
    if json_wanted:
        output.print_json({"go": found.verdict.go, "code": found.verdict.code, **output.jsonable(found)})
    else:
        output.heading(_verdict(found))
        answers(found.verdict)
        limits(jobid, found.room)
        for one in found.outputs:
            reason = f": {one.reason}" if one.reason else ""
            output.say(
                f"{one.datasetid}/{one.dataid} is {one.status or 'NULL'} since {output.moment(one.modified)}{reason}"
            )
    answer(found.verdict.go)


def limits(jobid: str, room: Room) -> None:
    if room.paused:
        output.say(f"It is paused since {room.paused}; let it go on: odf resume {jobid}")
    if room.concurrency is not None:
        output.say(
            f"At most {room.concurrency} of its chunks run at a time, and {room.running} do; "
            f"change that: odf throttle {jobid} N"
        )


def _verdict(found: WhyChunk) -> str:
    chunk = f"{found.verdict.jobid}/{found.verdict.dataid}"
    if found.verdict.go:
        return f"{chunk} can run"
    since = f", since {output.moment(found.since)}" if found.since else ""
    return f"{chunk} cannot run: {found.verdict.code}{since}"
