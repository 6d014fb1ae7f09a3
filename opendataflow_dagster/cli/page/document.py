"""The whole page. Its policy lets nothing run or load but its own script and style."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from .attention import WAITING, attention
from .datasets import datasets
from .heat_maps import data
from .parts import Html, Stories, mark
from .runs import limits, runs
from .stories import stories
from .throughput import throughput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opendataflow_dagster.insight.heat_map import HeatMap
    from opendataflow_dagster.insight.report import (
        ChunkDurations,
        CurrentStory,
        FailureReport,
        LedgerReport,
        ThroughputReport,
    )
    from opendataflow_dagster.insight.runs import JobRun
    from opendataflow_dagster.insight.stale import StaleReport


@dataclass(frozen=True, kw_only=True, slots=True)
class PageFigures:
    """What the page shows."""

    at: datetime
    ledger: LedgerReport
    failures: FailureReport
    stale: StaleReport
    throughput: ThroughputReport
    durations: Sequence[ChunkDurations]
    runs: Sequence[JobRun]
    maps: Sequence[HeatMap]
    stories: Sequence[CurrentStory]


def document(figures: PageFigures, every: float | None = None) -> Html:
    """`every`: the page is written again after so many seconds, and reloads itself."""
    glance = figures.ledger.glance
    told = Stories(each.story.key for each in figures.stories)
    body = [
        _header(figures, every),
        attention(figures.failures, figures.stale, glance.deadlines, glance.datasets, told),
        datasets(glance.datasets, figures.maps, told),
        throughput(figures.throughput),
        runs(glance.running, figures.runs, figures.ledger.newest_runs, figures.durations, told),
        limits(glance.controls),
        stories(figures.stories, told),
    ]
    style, script = _asset("page.css"), _asset("page.js")
    facts = {
        "written": figures.at.timestamp(),
        "every": every,
        "maps": [data(each, told) for each in figures.maps],
    }
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_title(figures)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">'
        f"<style>{style}</style></head><body>{''.join(body)}"
        f'<div id="tip" role="status" hidden></div><dialog id="panel" aria-labelledby="panel-title"></dialog>'
        f'<script type="application/json" id="facts">{_embedded(facts)}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _title(figures: PageFigures) -> str:
    failed = len(figures.failures.chunks)
    return f"({failed:,} failed) OpenDataFlow report" if failed else "OpenDataFlow report"


def _header(figures: PageFigures, every: float | None) -> Html:
    datasets = figures.ledger.glance.datasets
    expected = sum(dataset.expected for dataset in datasets)
    ready = sum(dataset.counts.get("READY", 0) for dataset in datasets)
    running = sum(dataset.counts.get("RUNNING", 0) for dataset in datasets)
    deadlines = figures.ledger.glance.deadlines
    late = {*(chunk.datasetid for chunk in deadlines.late), *(data.datasetid for data in deadlines.not_fresh)}
    missing = sum(dataset.missing for dataset in datasets)
    waiting = sum(dataset.counts.get(status, 0) for dataset in datasets for status in WAITING)
    cards = [
        ("now", mark("FAILED"), f"{len(figures.failures.chunks):,}", f"of {len(figures.failures.causes):,} causes"),
        ("now", mark("late"), f"{len(late):,}", "of the DataSets"),
        ("now", mark("stale"), f"{figures.stale.total:,}", "READY, of old inputs"),
        ("now", mark("missing"), f"{missing:,}", "expected, not there"),
        ("now", mark("PENDING"), f"{waiting:,}", "or RESUBMIT"),
        ("runs", mark("RUNNING"), f"{running:,}", "now"),
        ("datasets", mark("READY"), f"{ready:,}", f"of {expected:,} expected"),
    ]
    shown = "".join(
        f'<li><a href="#{target}">{kind}<b>{number}</b><small>{note}</small></a></li>'
        for target, kind, number, note in cards
    )
    at = figures.at.astimezone()
    again = f"It is written again every {every:g} s." if every else "It shows that moment: odf report writes it again."
    return (
        f'<header class="top"><h1>OpenDataFlow</h1><p>As of <time datetime="{at.isoformat()}">{at:%Y-%m-%d %H:%M:%S} '
        f'{_zone(at)}</time>. All times are in this zone. <span id="age">{again}</span></p>'
        f'<ul class="cards">{shown}</ul></header>'
    )


def _zone(at: datetime) -> str:
    offset = f"{at:%z}"
    return f"{at:%Z} (UTC{offset[:3]}:{offset[3:5]})"


def _embedded(facts: dict[str, Any]) -> str:
    """JSON in which no text can end the element that it is in."""
    packed = json.dumps(facts, separators=(",", ":"))
    return packed.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8").strip()
