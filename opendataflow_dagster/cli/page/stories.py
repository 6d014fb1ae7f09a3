"""The stories of some chunks: what the row of the ledger says, the answers, attempts, versions and history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendataflow_dagster.insight.stale import cause_of

from ..history import transition
from ..output import counted, listing, span
from .parts import Html, Stories, command, mark, moment, name, section, show, table, text

if TYPE_CHECKING:
    from opendataflow_dagster.insight.report import CurrentStory
    from opendataflow_dagster.insight.story import Story
    from opendataflow_dagster.model.verdict import Verdict

_ATTEMPTS, _VERSIONS, _EVENTS, _CONSUMERS = 5, 5, 10, 8


def stories(shown: Sequence[CurrentStory], places: Stories) -> Html:
    if not shown:
        return ""
    any_other = command("odf chunk show DATASET DATAID")
    hint = f"<p>Of chunks that failed, wait, are on hold or run, and of the newest. Any other: {any_other}</p>"
    told = "".join(_story(each.story, places.find(each.story.key), each.answers) for each in shown)
    return section("stories", "Stories of chunks", hint, told)


def _story(story: Story, place: str | None, answers: Verdict | None) -> Html:
    heads = "".join(
        f"<p>{mark(chunk.status or 'NULL')} since {moment(chunk.modified)}, job {text(chunk.jobid)}, "
        f"attempt {chunk.attempt}{f', version {chunk.version}' if chunk.version else ''}</p>"
        + (f'<p class="reason">{text(chunk.reason)}</p>' if chunk.reason else "")
        for chunk in story.chunks
    )
    newest = story.verdicts[-1] if story.verdicts else None
    parts = [
        heads or "<p>It was deleted.</p>",
        _stale(story),
        _other_code(story),
        _answers("The five answers now", answers) if answers is not None else _answers("The stored answers", newest),
        _attempts(story),
        _versions(story),
        _consumers(story),
        _history(story),
        f"<p>All of it: {command(show(story.key))}</p>",
    ]
    status = "stale" if story.stale else story.chunks[0].status or "NULL" if story.chunks else "deleted"
    return (
        f'<details class="story"><summary>{mark(status)} <b>{text(story.key)}</b></summary>'
        f'<div id="story-{place}" data-title="{text(story.key)}">{"".join(parts)}</div></details>'
    )


def _stale(story: Story) -> Html:
    if (stale := story.stale) is None:
        return ""
    by = f", by {text(stale.by)}" if stale.by else ""
    below = f" {counted(stale.below, 'stale chunk')} further down." if stale.below else ""
    return f"<p>{mark('stale')} since {moment(stale.since)}{by}: {text(cause_of(stale))}.{below}</p>"


def _other_code(story: Story) -> Html:
    return "".join(
        f"<p>Made by other code ({text(chunk.code_version)}) than the current ({text(story.current_code)}).</p>"
        for chunk in story.chunks
        if chunk.is_other_code
    )


def _answers(title: str, verdict: Verdict | None) -> Html:
    if verdict is None:
        return ""
    rows = [
        [name(answer.question), "yes" if answer.yes else '<b class="no">no</b>', text(answer.reason)]
        for answer in verdict.answers
    ]
    asked = f" <small>asked {moment(verdict.asked)}</small>" if verdict.asked is not None else ""
    return f"<h4>{title}{asked}</h4>" + table(["question", "answer", "reason"], rows)


def _attempts(story: Story) -> Html:
    rows = [
        [
            moment(attempt.started),
            span(attempt.ended - attempt.started) if attempt.ended else "",
            mark(attempt.outcome or "RUNNING"),
            name(attempt.by),
            text(attempt.reason or ""),
        ]
        for attempt in story.attempts[-_ATTEMPTS:]
    ]
    if not rows:
        return ""
    failed = [attempt.traceback for attempt in story.attempts if attempt.traceback]
    lines = f"<h4>Where the newest of them failed</h4><pre>{text(failed[-1], lines=True)}</pre>" if failed else ""
    title = _newest("Attempts", len(story.attempts), _ATTEMPTS)
    return title + table(["started", "duration", "outcome", "by", "reason"], rows) + lines


def _versions(story: Story) -> Html:
    current = {chunk.manifest_id for chunk in story.chunks}
    rows = [
        [
            f"<b>{manifest.version} (current)</b>" if manifest.manifest_id in current else str(manifest.version),
            moment(manifest.published),
            "" if manifest.row_count is None else f"{manifest.row_count:,}",
            text(manifest.location),
            text(listing([str(pin) for pin in manifest.inputs], 5)),
        ]
        for manifest in story.versions[-_VERSIONS:]
    ]
    title = _newest("Versions", len(story.versions), _VERSIONS)
    columns = ["version", "published", "rows", "location", "made from"]
    return title + table(columns, rows, right=["rows"]) if rows else ""


def _consumers(story: Story) -> Html:
    consumers = [f"{jobid}/{dataid}" for jobid, dataid in story.consumers]
    return f"<p>Read by {text(listing(consumers, _CONSUMERS))}.</p>" if consumers else ""


def _history(story: Story) -> Html:
    rows = [
        [
            moment(event.at),
            text(
                ("" if event.locktype == "OUT" else f"{event.jobid} reads: ")
                + transition(event.old_status, event.new_status)
            ),
            name(event.actor or event.login),
            text(event.reason or ""),
        ]
        for event in story.events[-_EVENTS:]
    ]
    return _newest("History", len(story.events), _EVENTS) + table(["at", "change", "by", "reason"], rows)


def _newest(title: str, number: int, shown: int) -> Html:
    return f"<h4>{title}{f' <small>the newest {shown} of {number:,}</small>' if number > shown else ''}</h4>"
