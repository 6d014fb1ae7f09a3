"""What runs and ran, how long chunks take, and the limits of Jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendataflow_dagster.model.ids import ChunkKey

from ..output import counted, span
from .parts import Html, Stories, badge, mark, moment, name, section, table, text

if TYPE_CHECKING:
    from opendataflow_dagster.insight.report import ChunkDurations
    from opendataflow_dagster.insight.runs import JobRun, SlaCheck
    from opendataflow_dagster.insight.status import JobControl, RunningChunk


#: As many as the status tells.
_MOST = 20


def runs(
    running: Sequence[RunningChunk], newest: Sequence[JobRun], durations: Sequence[ChunkDurations], stories: Stories
) -> Html:
    return section("runs", "Runs", _running(running, stories), _newest(newest), _durations(durations))


def limits(controls: Sequence[JobControl], slas: Sequence[SlaCheck]) -> Html:
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
    return section("limits", "Limits", shown, _slas(slas))


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


def _slas(slas: Sequence[SlaCheck]) -> Html:
    if not slas:
        return ""
    rows = [
        [
            name(run.jobid),
            f"{span(run.duration)}{' so far' if run.running else ''}",
            span(run.limit),
            '<b class="no">breached</b>' if run.breached else "ok" if run.limit else "-",
            text(run.rule),
        ]
        for run in slas
    ]
    columns = ["Job", "newest run", "limit", "SLA", "rule"]
    return "<h3>SLA</h3><p>The newest run of each Job, compared with its limit.</p>" + table(
        columns, rows, right=columns[1:3]
    )
