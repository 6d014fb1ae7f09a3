"""`odf why`: what keeps a Job, a chunk, or everything from running."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .arguments import optional_job
from .connection import open_ledger
from .options import exit_with_answer, json_option
from .parsing import Moment

if TYPE_CHECKING:
    from opendataflow_dagster.insight.causes import Cause
    from opendataflow_dagster.insight.why import Room, WhyChunk, WhyJob


@click.command()
@optional_job
@click.argument("dataid", required=False)
@click.option("--stored", is_flag=True, help="Show the newest stored answers instead of evaluating them now.")
@click.option("--failed", "all_failed", is_flag=True, help="Show all failures, of all Jobs or of one, by cause.")
@click.option("--since", type=Moment(), help="With --failed: failures since this time, or an age such as 3h.")
@click.option("--until", type=Moment(), help="With --failed: failures before this time.")
@json_option
def why(
    jobid: str | None,
    dataid: str | None,
    stored: bool,
    all_failed: bool,
    since: datetime | None,
    until: datetime | None,
    json_wanted: bool,
) -> None:
    """Explain why something does not run: a chunk (the five answers), a Job, or all failures by cause.

    Exits with 0 if nothing blocks it and 1 otherwise.

    \b
    Example:
      odf why --failed
      odf why --failed --since 6h --json
      odf why average
      odf why average 2024-01-03
      odf why average 2024-01-03 --stored
    """
    if not all_failed and (since or until):
        raise InvalidInput("--since and --until require --failed")
    if stored and dataid is None:
        raise InvalidInput("--stored requires a chunk: odf why JOB DATAID --stored")
    if all_failed:
        if dataid is not None:
            raise InvalidInput("--failed cannot be combined with a dataid; for one chunk, use: odf why JOB DATAID")
        _explain_failures(jobid, since, until, json_wanted)
    elif jobid is None:
        raise InvalidInput("missing JOB; for all failures, use: odf why --failed")
    elif dataid is None:
        _explain_job(jobid, json_wanted)
    else:
        _explain_chunk(jobid, dataid, stored, json_wanted)


def _explain_failures(jobid: str | None, since: datetime | None, until: datetime | None, json_wanted: bool) -> None:
    from opendataflow_dagster.insight.causes import group_by_cause as insight
    from opendataflow_dagster.insight.selection import select_failed

    with open_ledger() as ledger:
        chunks = select_failed(ledger, jobid=jobid, since=since, until=until)
    causes = insight(chunks)
    if json_wanted:
        output.print_json({"failed": len(chunks), "causes": causes})
    elif not chunks:
        output.say("No failures.")
    else:
        output.heading(f"{output.counted(len(chunks), 'chunk')} failed, {output.counted(len(causes), 'cause')}")
        _print_causes(causes)
        command = _resubmit_command(jobid, since, until)
        output.say(f"After fixing the cause, run: {command} (preview with --dry-run)")
    exit_with_answer(not chunks)


def _resubmit_command(jobid: str | None, since: datetime | None, until: datetime | None) -> str:
    """Resubmits exactly the failures that were shown."""
    words = ["odf", "resubmit", *(["--failed-since", _typed(since)] if since else ["--failed"])]
    words += ["--until", _typed(until)] if until else []
    words += ["--job", jobid] if jobid else []
    return shlex.join(words)


def _typed(at: datetime) -> str:
    return at.astimezone().replace(tzinfo=None).isoformat(" ")


def _print_causes(causes: Sequence[Cause]) -> None:
    now = datetime.now(UTC)
    output.table(
        ["chunks", "cause", "jobs", "first", "last", "example"],
        [
            [
                f"{cause.count:,}",
                (cause.cause, "bold"),
                cause.jobs[0] if len(cause.jobs) == 1 else f"{len(cause.jobs):,}",
                output.moment(cause.first, now=now),
                f"{output.span(now - cause.last)} ago",
                _example(cause),
            ]
            for cause in causes
        ],
        right=["chunks"],
    )


def _example(cause: Cause) -> str:
    """With its reason, if that says more than the cause."""
    return str(cause.example) if cause.cause == " ".join(cause.reason.split()) else f"{cause.example}: {cause.reason}"


def _explain_job(jobid: str, json_wanted: bool) -> None:
    from opendataflow_dagster.insight.why import why_job

    with open_ledger() as ledger:
        explained = why_job(ledger, jobid)
    blocked = bool(explained.obstacles or explained.failures or explained.room.free == 0)
    if json_wanted:
        output.print_json(explained)
    else:
        _print_job(explained, blocked)
    exit_with_answer(not blocked)


def _print_job(explained: WhyJob, blocked: bool) -> None:
    output.heading(f"job {explained.jobid}: {output.counted(explained.runnable, 'chunk')} can run now")
    print_limits(explained.jobid, explained.room)
    if explained.obstacles:
        asked, waiting = explained.asked, explained.waiting
        sample = "" if asked == waiting else f" (checked the first {asked:,} of {waiting:,})"
        output.heading(f"\nMissing, blocked, waiting or on hold{sample}")
        output.table(
            ["chunks", "code", "reason", "for example"],
            [
                [f"{obstacle.count:,}", (obstacle.code, "red"), obstacle.reason, obstacle.example or ""]
                for obstacle in explained.obstacles
            ],
            right=["chunks"],
        )
    if explained.failures:
        output.heading("\nFailed")
        _print_causes(explained.failures)
    if not blocked:
        output.say("Nothing blocks it.")
    for count in explained.stale:
        are = "is" if count.stale == 1 else "are"
        output.say(
            f"{output.counted(count.stale, 'chunk')} of {count.datasetid} {are} stale, since "
            f"{output.moment(count.since)}; why: odf stale {count.datasetid}; "
            f"make again: odf refresh {count.datasetid}"
        )


def _explain_chunk(jobid: str, dataid: str, stored: bool, json_wanted: bool) -> None:
    from opendataflow_dagster.insight.why import why_chunk as insight

    from .chunk import print_answers, print_stale

    with open_ledger() as ledger:
        explained = insight(ledger, jobid, dataid, stored=stored)
    verdict = explained.verdict
    if json_wanted:
        output.print_json(
            {"go": verdict.go, "code": verdict.code, "finished": explained.is_finished, **output.jsonable(explained)}
        )
    else:
        output.heading(_verdict_line(explained))
        print_answers(verdict)
        if explained.obstacle is not None:
            output.say(f"It does not run by itself: {explained.obstacle.reason}")
        print_limits(jobid, explained.room)
        for chunk in explained.outputs:
            reason = f": {chunk.reason}" if chunk.reason else ""
            since = output.moment(chunk.modified)
            output.say(f"{chunk.datasetid}/{chunk.dataid} is {chunk.status or 'NULL'} since {since}{reason}")
        for stale in explained.stale:
            print_stale(stale)
    exit_with_answer(verdict.go)


def print_limits(jobid: str, room: Room) -> None:
    if room.paused:
        output.say(f"The Job is paused since {room.paused}; resume it with: odf resume {jobid}")
    if room.concurrency is not None:
        output.say(
            f"Concurrency limit: {room.running} of {output.counted(room.concurrency, 'chunk')} running; "
            f"change it with: odf throttle {jobid} N"
        )


def _verdict_line(explained: WhyChunk) -> str:
    chunk = f"{explained.verdict.jobid}/{explained.verdict.dataid}"
    if explained.verdict.go:
        return f"{chunk} can run"
    if explained.is_finished:
        return f"{chunk} is finished, since {output.moment(max(made.modified for made in explained.outputs))}"
    since = f", since {output.moment(explained.since)}" if explained.since else ""
    return f"{chunk} cannot run: {explained.verdict.code}{since}"
