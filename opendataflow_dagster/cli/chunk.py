"""`odf chunk show`: everything about one chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import output
from .arguments import dataset_argument
from .connection import open_ledger
from .diff import print_diff, story_diffs
from .groups import LazyGroup
from .history import transition
from .options import json_option

if TYPE_CHECKING:
    from opendataflow_dagster.insight.selection import Chunk
    from opendataflow_dagster.insight.stale import StaleChunk
    from opendataflow_dagster.insight.story import Attempt, Story
    from opendataflow_dagster.model.manifest import CheckResult, Manifest
    from opendataflow_dagster.model.verdict import Verdict


@click.group(cls=LazyGroup)
def chunk() -> None:
    """Show one chunk in full.

    \b
    Example:
      odf chunk show delays 2024-01-03
    """


@chunk.command("show")
@dataset_argument
@click.argument("dataid")
@click.option(
    "--diff",
    "with_diff",
    is_flag=True,
    help="Of a failed chunk, what its attempt wrote differently; of a stale one, what changed in its inputs.",
)
@json_option
def show(datasetid: str, dataid: str, with_diff: bool, json_wanted: bool) -> None:
    """Show everything about a chunk: attempts, answers, versions, inputs and history.

    \b
    Example:
      odf chunk show delays 2024-01-03
      odf chunk show delays 2024-01-03 --diff
      odf chunk show delays 2024-01-03 --json
    """
    from opendataflow_dagster.insight.story import story as insight
    from opendataflow_dagster.model.ids import ChunkKey, data_id, dataset_id

    with open_ledger() as ledger:
        story = insight(ledger, ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid)))
        diffs = story_diffs(ledger, story) if with_diff else []
    if json_wanted:
        compared = [{"chunk": request.chunk, "diff": diff, "problem": why} for request, diff, why in diffs]
        output.print_json({**output.jsonable(story), **({"diffs": compared} if with_diff else {})})
        return
    _print_story(story)
    for _, diff, why in diffs:
        output.write()
        if diff is not None:
            print_diff(diff)
        else:
            output.say(f"No difference to show: {why}")
    if with_diff and not diffs:
        output.write()
        output.say("The chunk is neither failed nor stale; compare its versions with odf diff.")


def _print_story(story: Story) -> None:
    for chunk in story.chunks:
        _print_head(story, chunk)
    if not story.chunks:
        output.heading(f"{story.key} was deleted")
    for newer in story.newer_inputs:
        if story.stale is None or str(story.stale.cause) != f"{newer.datasetid}/{newer.dataid}":
            used = f"version {newer.used}" if newer.used else "an external version"
            current = f"version {newer.current}" if newer.current else "an external version"
            output.say(f"  made from {used} of {newer.datasetid}/{newer.dataid}, which is now at {current}")
    if story.stale is not None:
        print_stale(story.stale)
    if story.attempts:
        output.heading("\nAttempts")
        output.table(
            ["started", "duration", "outcome", "by", "run", "claim", "reason"],
            [_attempt(attempt) for attempt in story.attempts],
        )
    if failed := [attempt for attempt in story.attempts if attempt.traceback]:
        output.heading(f"\nWhere the attempt of {output.moment(failed[-1].started)} failed")
        for line in (failed[-1].traceback or "").splitlines():
            output.say(f"  {line}")
    if story.versions:
        output.heading("\nVersions")
        output.table(
            ["version", "published", "rows", "bytes", "files", "location", "code", "made from"],
            [_version(manifest, story) for manifest in story.versions],
            right=["version", "rows", "bytes", "files"],
        )
    checks = [check for manifest in story.versions if _is_current(manifest, story) for check in manifest.checks]
    if checks:
        output.heading("\nChecks of the current version")
        output.table(
            ["check", "result", "severity", "figures"],
            [[check.name, _result(check), check.severity, check.detail] for check in checks],
        )
    if story.verdicts:
        newest = story.verdicts[-1]
        claimed = f" by claim {newest.claim_id}" if newest.claim_id else ""
        output.heading(f"\nThe five answers, asked {output.moment(newest.asked)}{claimed}")
        print_answers(newest)
    if story.consumers:
        output.heading("\nRead by")
        output.say("  " + output.listing([f"{jobid}/{dataid}" for jobid, dataid in story.consumers], 10))
    output.heading("\nHistory")
    output.table(
        ["at", "change", "by", "login", "reason"],
        [
            [
                output.moment(event.at),
                f"{'' if event.locktype == 'OUT' else event.jobid + ' reads: '}"
                f"{transition(event.old_status, event.new_status)}",
                event.actor or "",
                event.login,
                event.reason or "",
            ]
            for event in story.events
        ],
    )


def print_answers(verdict: Verdict) -> None:
    output.table(
        ["question", "answer", "reason"],
        [
            [answer.question, ("yes", "green") if answer.yes else ("no", "bold red"), answer.reason]
            for answer in verdict.answers
        ],
    )


def print_stale(chunk: StaleChunk) -> None:
    """Since when, by whom, why, and what follows from it."""
    from opendataflow_dagster.insight.stale import cause_of

    below = f"; {output.counted(chunk.below, 'stale chunk')} further down" if chunk.below else ""
    by = f", by {chunk.by}" if chunk.by else ""
    command = f"odf refresh {chunk.key.datasetid}"
    output.say(f"  stale since {output.moment(chunk.since)}{by}: {cause_of(chunk)}{below}; run: {command}")


def _print_head(story: Story, chunk: Chunk) -> None:
    version = f", version {chunk.version}" if chunk.version else ""
    held = f" (was {chunk.held_status})" if chunk.held_status else ""
    output.heading(f"{story.key} is {chunk.status or 'NULL'}{held}{version}, since {output.moment(chunk.modified)}")
    output.say(f"  job {chunk.jobid}, attempt {chunk.attempt}" + (f": {chunk.reason}" if chunk.reason else ""))
    if chunk.is_other_code:
        output.say(
            f"  made by other code ({chunk.code_version}) than the current ({story.current_code}); "
            f"resubmit it to rebuild it"
        )
    if chunk.lease_until:
        output.say(f"  held by claim {chunk.claim_id}; its lease expires {output.moment(chunk.lease_until)}")


def _attempt(attempt: Attempt) -> list[output.Cell]:
    by = attempt.by if attempt.ended_by in (None, attempt.by) else f"{attempt.by}, ended by {attempt.ended_by}"
    return [
        output.moment(attempt.started),
        output.span(attempt.ended - attempt.started) if attempt.ended else "",
        output.status(attempt.outcome or "RUNNING"),
        by,
        str(attempt.run_id or ""),
        str(attempt.claim_id or ""),
        attempt.reason or (f"version {attempt.version}" if attempt.version else ""),
    ]


def _is_current(manifest: Manifest, story: Story) -> bool:
    return any(chunk.manifest_id == manifest.manifest_id for chunk in story.chunks)


def _result(check: CheckResult) -> output.Cell:
    if check.passed:
        return ("passed", "green")
    return ("warning", "bold yellow") if check.is_warning else ("FAILED", "bold red")


def _version(manifest: Manifest, story: Story) -> list[output.Cell]:
    return [
        (f"{manifest.version} (current)", "bold") if _is_current(manifest, story) else str(manifest.version),
        output.moment(manifest.published),
        "" if manifest.row_count is None else f"{manifest.row_count:,}",
        f"{manifest.bytes:,}",
        str(len(manifest.files)),
        manifest.location,
        manifest.code_version or "unknown",
        output.listing([str(pin) for pin in manifest.inputs], 5),
    ]
