"""What runs and ran, how long chunks take, and the limits of Jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendataflow_dagster.model.ids import ChunkKey

from ..output import counted, span
from .parts import Html, Stories, badge, mark, moment, name, section, table, text

if TYPE_CHECKING:
    from opendataflow_dagster.insight.report import ChunkDurations
    from opendataflow_dagster.insight.runs import JobRun, NewestRun
    from opendataflow_dagster.insight.status import JobControl, RunningChunk


#: As many as the status tells.
_MOST = 20


def runs(
    running: Sequence[RunningChunk],
    newest: Sequence[JobRun],
    newest_of_jobs: Sequence[NewestRun],
    durations: Sequence[ChunkDurations],
    stories: Stories,
) -> Html:
    parts = [_running(running, stories), _newest(newest), _slow(newest_of_jobs), _durations(durations)]
    return section("runs", "Runs", *parts)


def limits(controls: Sequence[JobControl]) -> Html:
    limited = [
        [
            name(control.jobid),
            f"paused since {moment(control.paused)}"
            if control.paused is not None
            else f"at most {counted(control.concurrency or 0, 'chunk')} at a time",
            text(control.reason or ""),
        ]
        for control in controls
    ]
    shown = table(["Job", "limit", "reason"], limited) if limited else "<p>No Job is paused or limited.</p>"
    return section("limits", "Limits", shown)


def _running(running: Sequence[RunningChunk], stories: Stories) -> Html:
    if not running:
        return "<p>Nothing runs now.</p>"
    rows = [
        [
            stories.link(ChunkKey(datasetid=chunk.datasetid, dataid=chunk.dataid)),
            name(chunk.jobid),
            str(chunk.attempt),
            moment(chunk.since),
            moment(chunk.lease_until),
        ]
        for chunk in running
    ]
    title = f"{badge('RUNNING')}Running: {'' if len(running) < _MOST else 'the oldest '}{len(running)}"
    return f"<h3>{title}</h3>" + table(["chunk", "Job", "attempt", "since", "lease expires"], rows, right=["attempt"])


def _newest(newest: Sequence[JobRun]) -> Html:
    rows = [
        [
            str(run.run_id),
            name(run.jobid),
            text(f"{run.runner} {run.external_id or ''}"),
            moment(run.started),
            span(run.duration),
            mark("FAILED") if run.outcome == "FAILED" else text((run.outcome or "running").lower()),
        ]
        for run in newest
    ]
    columns = ["run", "Job", "started by", "started", "duration", "outcome"]
    return "<h3>Newest runs</h3>" + table(columns, rows, right=["run", "duration"]) if rows else ""


def _durations(durations: Sequence[ChunkDurations]) -> Html:
    if not durations:
        return ""
    rows = [
        [name(job.jobid), f"{job.chunks:,}", span(job.median), span(job.p95), span(job.longest)] for job in durations
    ]
    columns = ["Job", "chunks", "median", "p95", "longest"]
    return "<h3>Duration per chunk</h3><p>From claim to publication.</p>" + table(columns, rows, right=columns[1:])


def _slow(newest: Sequence[NewestRun]) -> Html:
    rows = [
        [
            name(run.jobid),
            f"{span(run.duration)}{' so far' if run.running else ''}",
            span(run.limit),
            text(run.rule),
        ]
        for run in newest
        if run.is_slow
    ]
    columns = ["Job", "newest run", "usual limit", "rule"]
    return "<h3>Slower than usual</h3>" + table(columns, rows, right=columns[1:3]) if rows else ""
