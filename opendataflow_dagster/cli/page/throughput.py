"""Chunks published by hour and by day, as bars with labelled axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ..output import counted
from .parts import Html, section

if TYPE_CHECKING:
    from opendataflow_dagster.insight.report import Throughput, ThroughputReport

_TICKS = 6


def throughput(report: ThroughputReport) -> Html:
    return section(
        "throughput",
        "Throughput",
        _chart("hour", report.hours, lambda at: f"{at:%d %b %H:%M}", lambda at: f"{at:%H:%M}"),
        _chart("day", report.days, lambda at: f"{at:%d %b %Y}", lambda at: f"{at:%d %b}"),
    )


def _chart(
    unit: str, spans: Sequence[Throughput], name: Callable[[datetime], str], label: Callable[[datetime], str]
) -> Html:
    title = f"Chunks published per {unit}"
    most = max((span.versions for span in spans), default=0)
    total = sum(span.versions for span in spans)
    top = _round_up(most)
    bars = "".join(_bar(span, top, name(span.begins.astimezone())) for span in spans)
    every = -(-len(spans) // _TICKS)
    ticks = "".join(
        f'<span style="left:{place / len(spans) * 100:.2f}%">{label(spans[place].begins.astimezone())}</span>'
        for place in range(0, len(spans), every)
    )
    rows = sum(span.rows for span in spans)
    figures = f"{total:,} in all, {rows:,} rows; at most {most:,} per {unit}" if total else "none"
    uncounted = sum(not span.is_complete for span in spans)
    note = f" The first {uncounted} are not counted: only the newest versions are read." if uncounted else ""
    half = f"{top // 2:,}" if top > 1 else ""
    return (
        f'<figure class="chart"><figcaption><b>{title}</b> '
        f"<small>the last {counted(len(spans), unit)}: {figures}.{note}</small></figcaption>"
        f'<div class="plot"><div class="scale" aria-hidden="true">'
        f"<span>{top:,}</span><span>{half}</span><span>0</span></div>"
        f'<div class="bars" role="img" aria-label="{title}: {figures}">{bars}</div>'
        f'<div class="axis" aria-hidden="true">{ticks}</div></div></figure>'
    )


def _bar(span: Throughput, top: int, name: str) -> Html:
    if not span.is_complete:
        return f'<i class="uncounted" title="{name}: not counted"></i>'
    says = f"{name}: {counted(span.versions, 'chunk')}, {counted(span.rows, 'row')}"
    return f'<i style="--part:{span.versions / top:.4f}" title="{says}"></i>'


def _round_up(most: int) -> int:
    """The next of 1, 2, 4, 6, 10, 20, 40, 60, 100 and so on."""
    size = 1
    while True:
        for step in (1, 2, 4, 6):
            if step * size >= most:
                return step * size
        size *= 10
