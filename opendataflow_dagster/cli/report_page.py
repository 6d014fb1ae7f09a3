"""The report as a self-contained HTML page: no scripts, external style sheets or images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from . import heatmap
from .output import listing, moment, span

if TYPE_CHECKING:
    from opendataflow_dagster.insight.report import ChunkDurations, FailureReport, HourlyThroughput, LedgerReport
    from opendataflow_dagster.insight.runs import SlaCheck
    from opendataflow_dagster.model.ids import DatasetId
    from opendataflow_dagster.model.verdict import Verdict

_COLOURS = {
    "READY": "#2e9e5b",
    "RUNNING": "#2f6fde",
    "RESUBMIT": "#e0a100",
    "PENDING": "#b8bec6",
    "FAILED": "#d6333f",
    "HOLD": "#a04bc6",
    "SKIPPED": "#3fb3bf",
}
_OTHER = "#7a1f28"
_CELL, _ACROSS = 7, 120
_SHOWN_FAILURES = 500

_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1100px; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td { overflow-wrap: anywhere; } .no { color: #d6333f; font-weight: 600; } .yes { color: #2e9e5b; }
figure { margin: 1rem 0; } figcaption { font-weight: 600; } svg { max-width: 100%; height: auto; display: block; }
.key span { display: inline-block; margin-right: 1rem; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
.big { font-size: 1.6rem; font-weight: 600; } .cards { display: flex; gap: 2.5rem; flex-wrap: wrap; }
""".strip()


def page(
    figures: LedgerReport,
    failures: FailureReport,
    durations: Sequence[ChunkDurations],
    hours: Sequence[HourlyThroughput],
    maps: Mapping[DatasetId, Sequence[tuple[str, str | None]]],
    undrawn: int,
) -> str:
    """`undrawn` is the number of DataSets without a heat-map."""
    now = datetime.now(UTC)
    parts = [
        _cards(figures, failures),
        _datasets(figures, now),
        "<h2>Heat-maps</h2>"
        + _key()
        + "".join(_map(name, chunks) for name, chunks in maps.items())
        + _undrawn(undrawn),
        _failures(failures, now),
        _hours(hours),
        _durations(durations),
        _sla(figures.sla),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>OpenDataFlow report</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>OpenDataFlow</h1><p>As of {now.astimezone():%Y-%m-%d %H:%M %Z}.</p>{''.join(parts)}</body></html>\n"
    )


def _cards(figures: LedgerReport, failures: FailureReport) -> str:
    expected = sum(dataset.expected for dataset in figures.glance.datasets)
    ready = sum(dataset.counts.get("READY", 0) for dataset in figures.glance.datasets)
    running = sum(dataset.counts.get("RUNNING", 0) for dataset in figures.glance.datasets)
    cards = [
        (f"{ready:,} of {expected:,}", "expected chunks READY"),
        (f"{running:,}", "running"),
        (f"{len(failures.chunks):,}", "failed"),
        (f"{len(failures.causes):,}", "causes"),
        (f"{sum(run.breached for run in figures.sla):,}", "Jobs take longer than usual"),
    ]
    shown = "".join(f'<div><div class="big">{value}</div>{label}</div>' for value, label in cards)
    paused = [control.jobid for control in figures.glance.controls if control.paused is not None]
    limits = f"<p>Paused: {escape(', '.join(paused))}.</p>" if paused else ""
    return f'<div class="cards">{shown}</div>{limits}'


def _datasets(figures: LedgerReport, now: datetime) -> str:
    statuses = [name for name in _COLOURS if any(dataset.counts.get(name) for dataset in figures.glance.datasets)]
    rows = [
        [
            escape(dataset.datasetid),
            escape(dataset.jobid or ""),
            *(f"{dataset.counts[name]:,}" if dataset.counts.get(name) else "" for name in statuses),
            f"{dataset.missing:,}" if dataset.missing else "",
            "" if dataset.progress is None else f"{int(dataset.progress * 100)} %",
            escape(f"{dataset.obstacle.dataid}: {dataset.obstacle.reason}") if dataset.obstacle else "",
            escape(moment(dataset.oldest_waiting, now=now)),
            span(dataset.eta),
        ]
        for dataset in figures.glance.datasets
    ]
    numbers = range(2, len(statuses) + 4)
    columns = ["DataSet", "producer", *statuses, "missing", "done", "waits for", "waiting since", "ETA"]
    return "<h2>DataSets</h2>" + _table(columns, rows, numbers)


def _key() -> str:
    marks = "".join(f'<span><i style="background:{colour}"></i>{name}</span>' for name, colour in _COLOURS.items())
    return f'<p class="key">{marks}<span><i style="background:{_OTHER}"></i>other</span></p>'


def _map(name: str, chunks: Sequence[tuple[str, str | None]]) -> str:
    """One path per status: ten thousand chunks are eight elements."""
    cells = heatmap.cells(chunks)
    paths: dict[str, list[str]] = {}
    for place, cell in enumerate(cells):
        x, y = place % _ACROSS * _CELL, place // _ACROSS * _CELL
        paths.setdefault(cell.status, []).append(f"M{x} {y}h{_CELL - 1}v{_CELL - 1}h-{_CELL - 1}z")
    drawn = "".join(
        f'<path fill="{_COLOURS.get(status, _OTHER)}" d="{"".join(strokes)}"><title>{escape(status)}</title></path>'
        for status, strokes in paths.items()
    )
    width, height = min(len(cells), _ACROSS) * _CELL, -(-len(cells) // _ACROSS) * _CELL
    several = f"; each cell stands for {cells[0].count} and shows the worst status" if cells[0].count > 1 else ""
    first, last = escape(chunks[0][0]), escape(chunks[-1][0])
    return (
        f"<figure><figcaption>{escape(name)}</figcaption>"
        f'<svg role="img" aria-label="{escape(name)}" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{drawn}</svg>{first} to {last}, {len(chunks):,} chunks{several}</figure>"
    )


def _undrawn(count: int) -> str:
    return f"<p>Not drawn: {count:,} more DataSets with fewer failures; use odf chunks.</p>" if count else ""


def _failures(failures: FailureReport, now: datetime) -> str:
    if not failures.chunks:
        return "<h2>Failures</h2><p>None.</p>"
    causes = [
        [
            f"{cause.count:,}",
            escape(listing(cause.jobs, 3)),
            escape(moment(cause.first, now=now)),
            escape(moment(cause.last, now=now)),
            f"<b>{escape(cause.cause)}</b>",
        ]
        for cause in failures.causes
    ]
    rows = [
        [
            escape(f"{chunk.datasetid}/{chunk.dataid}"),
            escape(moment(chunk.modified, now=now)),
            escape(chunk.reason or ""),
        ]
        for chunk in failures.chunks[:_SHOWN_FAILURES]
    ]
    more = len(failures.chunks) - len(rows)
    return (
        "<h2>Failures</h2>"
        + _table(["chunks", "Jobs", "first", "last", "cause"], causes, [0])
        + "".join(_answers(verdict) for verdict in failures.answers)
        + f"<details><summary>All failed chunks ({len(failures.chunks):,})</summary>"
        + _table(["chunk", "since", "reason"], rows)
        + (f"<p>And {more:,} more.</p>" if more else "")
        + "</details>"
    )


def _answers(verdict: Verdict) -> str:
    rows = [
        [
            answer.question,
            f'<span class="{"yes" if answer.yes else "no"}">{"yes" if answer.yes else "no"}</span>',
            escape(answer.reason),
        ]
        for answer in verdict.answers
    ]
    return f"<h3>Current answers for {escape(verdict.jobid)}/{escape(verdict.dataid)}</h3>" + _table(
        ["question", "answer", "reason"], rows
    )


def _hours(hours: Sequence[HourlyThroughput]) -> str:
    most = max((hour.versions for hour in hours), default=0)
    if not most:
        return "<h2>Throughput</h2><p>Nothing was published.</p>"
    bars = "".join(
        f'<rect x="{place * 20}" y="{100 - height:.1f}" width="17" height="{height:.1f}" fill="{_COLOURS["RUNNING"]}">'
        f"<title>{hour.hour.astimezone():%d %b %H:00}: {hour.versions:,} versions, {hour.rows:,} rows</title></rect>"
        for place, hour in enumerate(hours)
        for height in (hour.versions / most * 100,)
    )
    total = sum(hour.versions for hour in hours)
    return (
        f"<h2>Throughput</h2><p>{total:,} versions in the last {len(hours)} hours, at most {most:,} per hour.</p>"
        f'<svg role="img" aria-label="Versions per hour" width="{len(hours) * 20}" height="100" '
        f'viewBox="0 0 {len(hours) * 20} 100">{bars}</svg>'
        f"{hours[0].hour.astimezone():%d %b %H:00} to now"
    )


def _durations(durations: Sequence[ChunkDurations]) -> str:
    rows = [
        [escape(job.jobid), f"{job.chunks:,}", span(job.median), span(job.p95), span(job.longest)] for job in durations
    ]
    return "<h2>Duration per chunk</h2>" + _table(["Job", "chunks", "median", "p95", "longest"], rows, range(1, 5))


def _sla(slas: Sequence[SlaCheck]) -> str:
    rows = [
        [
            escape(run.jobid),
            f"{span(run.duration)}{' so far' if run.running else ''}",
            span(run.limit),
            '<span class="no">breached</span>' if run.breached else '<span class="yes">ok</span>' if run.limit else "-",
            escape(run.rule),
        ]
        for run in slas
    ]
    return "<h2>SLA</h2><p>The newest run of each Job, compared with its limit.</p>" + _table(
        ["Job", "newest run", "limit", "SLA", "rule"], rows, range(1, 3)
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """Cells must be HTML already."""
    right = set(numbers)
    kind = [' class="n"' if place in right else "" for place in range(len(columns))]
    head = "".join(f"<th{kind[place]}>{escape(name)}</th>" for place, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(f"<td{kind[place]}>{cell}</td>" for place, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
