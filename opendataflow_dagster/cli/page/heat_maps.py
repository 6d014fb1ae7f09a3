"""The heat-map of a DataSet: a row of cells with an axis, and a letter above what needs attention."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

from opendataflow_dagster.insight.heat_map import badness
from opendataflow_dagster.model.ids import ChunkKey

from ..output import counted, printable
from .axis import ticks
from .parts import Html, Stories, colour, letter, local, text

if TYPE_CHECKING:
    from opendataflow_dagster.insight.heat_map import CellCount, HeatMap, MapCell

#: How high a cell is, of 100: the second sign, beside the colour.
_HEIGHTS = {
    "FAILED": 100,
    "HOLD": 92,
    "stale": 84,
    "RUNNING": 74,
    "READY": 64,
    "RESUBMIT": 52,
    "PENDING": 40,
    "SKIPPED": 26,
    "missing": 14,
}
_QUIET = ("READY", "SKIPPED")
#: Two flags are so far apart, of the width.
_APART, _APART_ON_A_PHONE = 0.016, 0.05
#: A line separates so many cells, not more.
_SEPARATED = 120
_LONGEST_REASON = 300


def heat_map(place: int, each: HeatMap, stories: Stories) -> Html:
    """`place`: of its data, among those of all heat-maps."""
    cells = each.cells
    first, last = text(cells[0].first), text(cells[-1].last)
    size = counted(each.chunks, "chunk")
    several = max(cell.chunks for cell in cells)
    stands = f"; a cell stands for {several:,}" if several > 1 else ""
    few = " few" if len(cells) <= _SEPARATED else ""
    return (
        f'<div class="map{few}" style="--cells:{len(cells)}"><div class="flags">{_flags(each, stories)}</div>'
        f'<div class="strip" tabindex="0" role="img" data-map="{place}" '
        f'aria-label="{text(each.datasetid)}: {size} from {first} to {last}">{_shapes(cells)}</div>'
        f'<div class="axis" aria-hidden="true">{ticks([cell.first for cell in cells])}</div>'
        f'<p class="range"><span>{first}</span><span>{size}{stands}</span><span>{last}</span></p></div>'
    )


def data(each: HeatMap, stories: Stories) -> dict[str, Any]:
    """For the page's script."""
    return {"name": printable(each.datasetid), "cells": [_cell_data(cell, each, stories) for cell in each.cells]}


def _cell_data(cell: MapCell, each: HeatMap, stories: Stories) -> list[object]:
    """First, last, status, since, reason, story, how many of each status, example; without the zeros at the end."""
    worst = cell.worst
    values: list[object] = [
        printable(cell.first),
        printable(cell.last) if cell.last != cell.first else 0,
        printable(worst.status),
        local(worst.since) if worst.since is not None else 0,
        printable(worst.reason or "")[:_LONGEST_REASON] or 0,
        stories.find(_key(each, worst)) or 0,
        [[printable(count.status), count.chunks] for count in cell.counts] if cell.chunks > 1 else 0,
        printable(worst.example) if worst.example != cell.first else 0,
    ]
    while values[-1] == 0:
        values.pop()
    return values


def _shapes(cells: Sequence[MapCell]) -> Html:
    """One path for each status, however many cells there are."""
    strokes: dict[str, list[str]] = {}
    for status, run in groupby(enumerate(cells), lambda item: item[1].worst.status):
        places = [place for place, _ in run]
        height = _HEIGHTS.get(status, 100)
        strokes.setdefault(status, []).append(f"M{places[0]} {100 - height}h{len(places)}v{height}h-{len(places)}z")
    # The worst are drawn last, over the edges of their neighbours.
    drawn = "".join(
        f'<path class="{colour(status)}" d="{"".join(strokes[status])}"><title>{text(status)}</title></path>'
        for status in sorted(strokes, key=badness, reverse=True)
    )
    return f'<svg viewBox="0 0 {len(cells)} 100" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


def _flags(each: HeatMap, stories: Stories) -> Html:
    """The letter of each row of equal cells that need attention, as far as there is room; the worst have it first."""
    runs = [
        (status, [place for place, _ in run])
        for status, run in groupby(enumerate(each.cells), lambda item: item[1].worst.status)
        if status not in _QUIET
    ]
    flags: dict[float, Html] = {}
    on_a_phone: list[float] = []
    for status, places in sorted(runs, key=lambda run: (badness(run[0]), -run[1][-1])):
        left = (places[0] + places[-1] + 1) / 2 / len(each.cells)
        if any(abs(left - other) < _APART for other in flags):
            continue
        is_minor = any(abs(left - other) < _APART_ON_A_PHONE for other in on_a_phone)
        if not is_minor:
            on_a_phone.append(left)
        counts = [each.cells[place].worst for place in places]
        minor = " minor" if is_minor else ""
        flags[left] = _flag(each, counts, f'class="flag {colour(status)}{minor}" style="left:{left:.2%}"', stories)
    return "".join(flags[left] for left in sorted(flags))


def _flag(each: HeatMap, counts: Sequence[CellCount], looks: str, stories: Stories) -> Html:
    newest = counts[-1]
    number = sum(count.chunks for count in counts)
    chunk = f"{each.datasetid}/{newest.example}"
    says = f"{chunk}: {newest.status}" if number == 1 else f"{number:,} {newest.status}, e.g. {chunk}"
    since = f" since {local(newest.since)}" if newest.since is not None else ""
    reason = f": {newest.reason[:_LONGEST_REASON]}" if newest.reason else ""
    about = f'{looks} title="{text(f"{says}{since}{reason}")}"'
    shown = escape(letter(newest.status))
    story = stories.find(_key(each, newest))
    if story is None:
        return f"<span {about}>{shown}</span>"
    return f'<a {about} aria-label="{text(says)}" href="#story-{story}">{shown}</a>'


def _key(each: HeatMap, count: CellCount) -> ChunkKey:
    return ChunkKey(datasetid=each.datasetid, dataid=count.example)
