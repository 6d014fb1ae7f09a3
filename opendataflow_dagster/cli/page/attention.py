"""What is wrong now: failures by cause, and what is missing or waits, with what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendataflow_dagster.insight.stale import cause_of, is_left_to_a_person
from opendataflow_dagster.model.ids import ChunkKey
from opendataflow_dagster.model.status import Status

from ..deadlines import find_late
from ..output import counted
from .parts import Html, Stories, badge, command, moment, name, names, section, table, text

if TYPE_CHECKING:
    from opendataflow_dagster.insight.deadlines import Deadlines
    from opendataflow_dagster.insight.report import FailureReport
    from opendataflow_dagster.insight.stale import StaleReport
    from opendataflow_dagster.insight.status import DatasetStatus

_NOTHING = "Nothing: no chunk failed, is late or stale, waits or is on hold."
_CAUSES = 50
_FAILURES = 500
#: Planned or to be made again, and not running.
WAITING = (Status.PENDING, Status.RESUBMIT)


def attention(
    failures: FailureReport,
    stale: StaleReport,
    deadlines: Deadlines,
    datasets: Sequence[DatasetStatus],
    stories: Stories,
) -> Html:
    parts = [
        _failures(failures, stories),
        _late(deadlines),
        _stale(stale, stories),
        _waiting(datasets, stories),
        _held(datasets),
    ]
    found = [part for part in parts if part]
    return section("now", "What is wrong now", *(found or [f"<p>{_NOTHING}</p>"]))


def _failures(failures: FailureReport, stories: Stories) -> Html:
    if not failures.chunks:
        return ""
    rows = [
        [
            f"{cause.count:,}",
            f"<b>{text(cause.cause)}</b>",
            names(cause.jobs),
            moment(cause.first),
            moment(cause.last),
            stories.link(cause.example),
        ]
        for cause in failures.causes[:_CAUSES]
    ]
    more = len(failures.causes) - len(rows)
    chunks = [
        [
            stories.link(ChunkKey(datasetid=chunk.datasetid, dataid=chunk.dataid)),
            moment(chunk.modified),
            text(chunk.reason or ""),
        ]
        for chunk in failures.chunks[:_FAILURES]
    ]
    unlisted = len(failures.chunks) - len(chunks)
    title = f"{counted(len(failures.chunks), 'chunk')} failed, {counted(len(failures.causes), 'cause')}"
    return (
        f'<h3 id="failed">{badge("FAILED")}{title}</h3>'
        + table(["chunks", "cause", "Jobs", "first", "last", "for example"], rows, right=["chunks"])
        + (f"<p>And {more:,} more causes: {command('odf why --failed')}</p>" if more else "")
        + f"<details><summary>All failed chunks ({len(failures.chunks):,})</summary>"
        + table(["chunk", "since", "reason"], chunks)
        + (f"<p>And {unlisted:,} more.</p>" if unlisted else "")
        + "</details>"
        + f'<p class="next">When the cause is fixed: {command("odf resubmit --failed")}</p>'
    )


def _late(deadlines: Deadlines) -> Html:
    rows = [
        [name(late.datasetid), text(late.chunks or ""), text(late.what), moment(late.since)]
        for late in find_late(deadlines)
    ]
    if not rows:
        return ""
    title = f"{counted(len({late.datasetid for late in find_late(deadlines)}), 'DataSet')} late"
    return f'<h3 id="late">{badge("late")}{title}</h3>' + table(
        ["DataSet", "late", "what", "since"], rows, right=["late"]
    )


def _stale(stale: StaleReport, stories: Stories) -> Html:
    if not stale.total:
        return ""
    # The first of each DataSet: those with a newer input of their own.
    examples = {chunk.key.datasetid: chunk for chunk in reversed(stale.chunks)}
    rows = [
        [
            name(count.datasetid),
            f"{count.stale:,}",
            moment(count.since),
            stories.link(example.key) if (example := examples.get(count.datasetid)) else "",
            text(cause_of(example)) if example else "",
            "too many: by hand" if is_left_to_a_person(count) else "by itself" if count.is_rebuilt else "by hand",
        ]
        for count in stale.datasets
    ]
    chunks = [
        [stories.link(chunk.key), text(cause_of(chunk)), moment(chunk.since), name(chunk.by or ""), f"{chunk.below:,}"]
        for chunk in stale.chunks
    ]
    unlisted = stale.total - len(chunks)
    return (
        f'<h3 id="stale">{badge("stale")}{counted(stale.total, "stale chunk")}: READY, but made from old inputs</h3>'
        + table(["DataSet", "stale", "since", "for example", "cause", "made again"], rows, right=["stale"])
        + f"<details><summary>Stale chunks ({len(chunks):,})</summary>"
        + table(["chunk", "cause", "since", "by", "further down"], chunks, right=["further down"])
        + (f"<p>And {unlisted:,} more: {command('odf stale')}</p>" if unlisted else "")
        + "</details>"
        + f'<p class="next">Make exactly these again, producers first: {command("odf refresh")}</p>'
    )


def _waiting(datasets: Sequence[DatasetStatus], stories: Stories) -> Html:
    obstacles = [(dataset, dataset.obstacle) for dataset in datasets if dataset.obstacle is not None]
    if not obstacles:
        return ""
    rows = [
        [
            name(dataset.datasetid),
            f"{dataset.missing:,}" if dataset.missing else "",
            f"{waiting:,}" if (waiting := sum(dataset.counts.get(status, 0) for status in WAITING)) else "",
            f"{dataset.blocked:,}" if dataset.blocked else "",
            stories.link(ChunkKey(datasetid=dataset.datasetid, dataid=obstacle.dataid)),
            text(obstacle.reason),
            moment(dataset.oldest_waiting),
        ]
        for dataset, obstacle in obstacles
    ]
    numbers = ["missing", "waiting", "refused"]
    columns = ["DataSet", *numbers, "for example", "waits for", "oldest since"]
    title = f"{counted(len(obstacles), 'DataSet')} with missing or waiting chunks"
    return f'<h3 id="waiting">{badge("missing")}{title}</h3>' + table(columns, rows, right=numbers)


def _held(datasets: Sequence[DatasetStatus]) -> Html:
    held = {dataset.datasetid: number for dataset in datasets if (number := dataset.counts.get("HOLD", 0))}
    if not held:
        return ""
    shown = ", ".join(f"{text(datasetid)}: {number:,}" for datasetid, number in held.items())
    return f'<h3 id="held">{badge("HOLD")}{counted(sum(held.values()), "chunk")} on hold</h3><p>{shown}</p>'
