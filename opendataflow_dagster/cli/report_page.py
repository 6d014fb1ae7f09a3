"""The report as one self-contained HTML page: no script, no style sheet, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from . import heatmap
from .output import moment, span

if TYPE_CHECKING:
    from opendataflow_dagster.insight.report import FailureReport, LedgerReport
    from opendataflow_dagster.insight.runs import SlaCheck
    from opendataflow_dagster.ledger.overview import ChunkDurations, HourlyThroughput
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
    """`undrawn`: so many DataSets have no heat-map here."""
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
    chunks = sum(one.chunks for one in figures.glance.datasets)
    ready = sum(one.counts.get("READY", 0) for one in figures.glance.datasets)
    running = sum(one.counts.get("RUNNING", 0) for one in figures.glance.datasets)
    cards = [
        (f"{ready:,} of {chunks:,}", "chunks are READY"),
        (f"{running:,}", "run now"),
        (f"{len(failures.chunks):,}", "failed"),
        (f"{len(failures.causes):,}", "causes"),
        (f"{sum(one.breached for one in figures.sla):,}", "Jobs take longer than usual"),
    ]
    shown = "".join(f'<div><div class="big">{value}</div>{label}</div>' for value, label in cards)
    paused = [one for one in figures.glance.controls if one.paused is not None]
    limits = f"<p>Paused: {escape(', '.join(one.jobid for one in paused))}.</p>" if paused else ""
    return f'<div class="cards">{shown}</div>{limits}'


def _datasets(figures: LedgerReport, now: datetime) -> str:
    words = [word for word in _COLOURS if any(one.counts.get(word) for one in figures.glance.datasets)]
    rows = [
        [
            escape(one.datasetid),
            escape(one.jobid or ""),
            *(f"{one.counts[word]:,}" if one.counts.get(word) else "" for word in words),
            "" if one.progress is None else f"{int(one.progress * 100)} %",
            escape(moment(one.oldest_waiting, now=now)),
            span(one.eta),
        ]
        for one in figures.glance.datasets
    ]
    numbers = range(2, len(words) + 3)
    return "<h2>DataSets</h2>" + _table(["DataSet", "made by", *words, "done", "waits since", "ETA"], rows, numbers)


def _key() -> str:
    marks = "".join(f'<span><i style="background:{colour}"></i>{word}</span>' for word, colour in _COLOURS.items())
    return f'<p class="key">{marks}<span><i style="background:{_OTHER}"></i>another word</span></p>'


def _map(name: str, chunks: Sequence[tuple[str, str | None]]) -> str:
    """A path for each status: ten thousand chunks are eight elements."""
    cells = heatmap.cells(chunks)
    paths: dict[str, list[str]] = {}
    for place, cell in enumerate(cells):
        x, y = place % _ACROSS * _CELL, place // _ACROSS * _CELL
        paths.setdefault(cell.status, []).append(f"M{x} {y}h{_CELL - 1}v{_CELL - 1}h-{_CELL - 1}z")
    drawn = "".join(
        f'<path fill="{_COLOURS.get(word, _OTHER)}" d="{"".join(strokes)}"><title>{escape(word)}</title></path>'
        for word, strokes in paths.items()
    )
    width, height = min(len(cells), _ACROSS) * _CELL, -(-len(cells) // _ACROSS) * _CELL
    several = f", {cells[0].count} in a cell, which shows the worst" if cells[0].count > 1 else ""
    first, last = escape(chunks[0][0]), escape(chunks[-1][0])
    return (
        f"<figure><figcaption>{escape(name)}</figcaption>"
        f'<svg role="img" aria-label="{escape(name)}" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{drawn}</svg>{first} to {last}, {len(chunks):,} chunks{several}</figure>"
    )


def _undrawn(count: int) -> str:
    return f"<p>Not drawn: {count:,} more DataSets, which have fewer failures; see odf chunks.</p>" if count else ""


def _failures(failures: FailureReport, now: datetime) -> str:
    if not failures.chunks:
        return "<h2>What failed</h2><p>Nothing.</p>"
    causes = [
        [
            f"{one.count:,}",
            escape(", ".join(one.jobs[:3]) + (f" and {len(one.jobs) - 3} more" if len(one.jobs) > 3 else "")),
            escape(moment(one.first, now=now)),
            escape(moment(one.last, now=now)),
            f"<b>{escape(one.cause)}</b>",
        ]
        for one in failures.causes
    ]
    rows = [
        [escape(f"{one.datasetid}/{one.dataid}"), escape(moment(one.modified, now=now)), escape(one.reason or "")]
        for one in failures.chunks[:_SHOWN_FAILURES]
    ]
    more = len(failures.chunks) - len(rows)
    return (
        "<h2>What failed</h2>"
        + _table(["chunks", "Jobs", "first", "last", "cause"], causes, [0])
        + "".join(_answers(one) for one in failures.answers)
        + f"<details><summary>All failed chunks ({len(failures.chunks):,})</summary>"
        + _table(["chunk", "since", "reason"], rows)
        + (f"<p>And {more:,} more.</p>" if more else "")
        + "</details>"
    )


def _answers(verdict: Verdict) -> str:
    rows = [
        [
            one.question,
            f'<span class="{"yes" if one.yes else "no"}">{"yes" if one.yes else "no"}</span>',
            escape(one.reason),
        ]
        for one in verdict.answers
    ]
    return f"<h3>The five answers now for {escape(verdict.jobid)}/{escape(verdict.dataid)}</h3>" + _table(
        ["question", "answer", "because"], rows
    )


def _hours(hours: Sequence[HourlyThroughput]) -> str:
    most = max((one.versions for one in hours), default=0)
    if not most:
        return "<h2>Throughput</h2><p>Nothing was published in these hours.</p>"
    bars = "".join(
        f'<rect x="{place * 20}" y="{100 - height:.1f}" width="17" height="{height:.1f}" fill="{_COLOURS["RUNNING"]}">'
        f"<title>{one.hour.astimezone():%d %b %H:00}: {one.versions:,} versions, {one.rows:,} rows</title></rect>"
        for place, one in enumerate(hours)
        for height in (one.versions / most * 100,)
    )
    total = sum(one.versions for one in hours)
    return (
        f"<h2>Throughput</h2><p>{total:,} versions in the last {len(hours)} hours, {most:,} in the best one.</p>"
        f'<svg role="img" aria-label="Versions an hour" width="{len(hours) * 20}" height="100" '
        f'viewBox="0 0 {len(hours) * 20} 100">{bars}</svg>'
        f"{hours[0].hour.astimezone():%d %b %H:00} to now"
    )


def _durations(durations: Sequence[ChunkDurations]) -> str:
    rows = [
        [escape(one.jobid), f"{one.chunks:,}", span(one.median), span(one.p95), span(one.longest)] for one in durations
    ]
    return "<h2>How long a chunk takes</h2>" + _table(
        ["Job", "chunks", "median", "95 of 100", "longest"], rows, range(1, 5)
    )


def _sla(slas: Sequence[SlaCheck]) -> str:
    rows = [
        [
            escape(one.jobid),
            f"{span(one.duration)}{' so far' if one.running else ''}",
            span(one.limit),
            '<span class="no">breached</span>' if one.breached else '<span class="yes">ok</span>' if one.limit else "-",
            escape(one.rule),
        ]
        for one in slas
    ]
    return "<h2>SLA</h2><p>The newest run of each Job against its limit.</p>" + _table(
        ["Job", "newest run", "limit", "SLA", "rule"], rows, range(1, 3)
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """The cells are HTML already."""
    right = set(numbers)
    kind = [' class="n"' if place in right else "" for place in range(len(columns))]
    head = "".join(f"<th{kind[place]}>{escape(name)}</th>" for place, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(f"<td{kind[place]}>{cell}</td>" for place, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
