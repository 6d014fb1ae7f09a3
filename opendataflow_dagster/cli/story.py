"""The story of a chunk, told in text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import output

if TYPE_CHECKING:
    from opendataflow_dagster.insight.story import Attempt, Story
    from opendataflow_dagster.ledger.chunks import Chunk
    from opendataflow_dagster.model.manifest import Manifest
    from opendataflow_dagster.model.verdict import Verdict


def tell(story: Story) -> None:
    for chunk in story.chunks:
        _head(story, chunk)
    if not story.chunks:
        output.heading(f"{story.key} was deleted")
    for one in story.newer_inputs:
        used, current = (f"version {one.used}" if one.used else "someone else's"), one.current or "someone else's"
        output.say(f"  out of date: made from {one.datasetid}/{one.dataid} {used}, now there is {current}; resubmit it")
    if story.attempts:
        output.heading("\nAttempts")
        output.table(
            ["began", "took", "outcome", "by", "run", "claim", "reason"], [_attempt(one) for one in story.attempts]
        )
    if story.versions:
        output.heading("\nVersions")
        output.table(
            ["version", "published", "rows", "bytes", "files", "location", "made from"],
            [_version(one, story) for one in story.versions],
            right=["version", "rows", "bytes", "files"],
        )
    if story.verdicts:
        newest = story.verdicts[-1]
        claimed = f" by claim {newest.claim_id}" if newest.claim_id else ""
        output.heading(f"\nThe five answers, asked {output.moment(newest.asked)}{claimed}")
        answers(newest)
    if story.consumers:
        names = ", ".join(f"{jobid}/{dataid}" for jobid, dataid in story.consumers[:10])
        more = f" and {len(story.consumers) - 10} more" if len(story.consumers) > 10 else ""
        output.heading("\nRead by")
        output.say(f"  {names}{more}")
    output.heading("\nHistory")
    output.table(
        ["at", "change", "by", "login", "reason"],
        [
            [
                output.moment(one.at),
                f"{'' if one.locktype == 'OUT' else one.jobid + ' reads: '}"
                f"{one.old_status or '-'} -> {one.new_status or 'gone'}",
                one.actor or "",
                one.login,
                one.reason or "",
            ]
            for one in story.events
        ],
    )


def answers(verdict: Verdict) -> None:
    output.table(
        ["question", "answer", "because"],
        [[one.question, ("yes", "green") if one.yes else ("no", "bold red"), one.reason] for one in verdict.answers],
    )


def _head(story: Story, chunk: Chunk) -> None:
    version = f", version {chunk.version}" if chunk.version else ""
    held = f" (it was {chunk.held_status})" if chunk.held_status else ""
    output.heading(f"{story.key} is {chunk.status or 'NULL'}{held}{version}, since {output.moment(chunk.modified)}")
    output.say(f"  job {chunk.jobid}, attempt {chunk.attempt}" + (f": {chunk.reason}" if chunk.reason else ""))
    if chunk.lease_until:
        output.say(f"  claim {chunk.claim_id} holds it; its lease ends {output.moment(chunk.lease_until)}")


def _attempt(one: Attempt) -> list[output.Cell]:
    by = one.by if one.ended_by in (None, one.by) else f"{one.by}, ended by {one.ended_by}"
    return [
        output.moment(one.started),
        output.span(one.ended - one.started) if one.ended else "",
        output.status(one.outcome) if one.outcome else output.status("RUNNING"),
        by,
        str(one.run_id or ""),
        str(one.claim_id or ""),
        one.reason or (f"version {one.version}" if one.version else ""),
    ]


def _version(one: Manifest, story: Story) -> list[output.Cell]:
    is_current = any(chunk.manifest_id == one.manifest_id for chunk in story.chunks)
    return [
        (f"{one.version} (current)", "bold") if is_current else str(one.version),
        output.moment(one.published),
        "" if one.row_count is None else f"{one.row_count:,}",
        f"{one.bytes:,}",
        str(len(one.files)),
        one.location,
        ", ".join(str(pin) for pin in one.inputs[:5]) + (" ..." if len(one.inputs) > 5 else ""),
    ]
