"""The labels below a row of cells: days, months or years where the dataids are times, some dataids otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from ..output import printable
from .parts import Html

#: Two labels are so many cells apart, where cells are as wide as they get; and there are at most so many.
_CELLS_PER_LABEL, _MOST_LABELS = 4, 13
_FEWEST_LABELS = 3
_TIME = re.compile(r"([12]\d{3})-(0[1-9]|1[0-2])-([0-3]\d)(?:-\d\d:\d\d)?", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def ticks(dataids: Sequence[str]) -> Html:
    """Every second one gives way on a narrow screen."""
    times = [time for dataid in dataids if (time := _TIME.fullmatch(dataid))]
    if len(times) == len(dataids):
        labels = _of_times([(time[1], time[2], time[3]) for time in times])
    else:
        places = dict.fromkeys(len(dataids) * quarter // 4 for quarter in (1, 2, 3))
        labels = [(place, printable(dataids[place])) for place in places if 0 < place < len(dataids) - 1]
    return "".join(
        f'<span style="left:{place / len(dataids):.2%}"{minor}>{escape(label)}</span>'
        for number, (place, label) in enumerate(labels)
        for minor in (' class="minor"' if number % 2 else "",)
    )


def _of_times(dates: Sequence[tuple[str, str, str]]) -> list[tuple[int, str]]:
    """Where a year, month or day begins: the longest of these that begins often enough."""
    starts: list[tuple[int, str]] = []
    for parts in (1, 2, 3):
        starts = [
            (place, _label(date, parts))
            for place, date in enumerate(dates)
            if place and date[:parts] != dates[place - 1][:parts]
        ]
        if len(starts) >= _FEWEST_LABELS:
            break
    most = max(2, min(_MOST_LABELS, len(dates) // _CELLS_PER_LABEL))
    return starts[:: -(-len(starts) // most) or 1]


def _label(date: tuple[str, str, str], parts: int) -> str:
    year, month, day = date
    if parts == 1 or (month, day) == ("01", "01"):
        return year
    name = _MONTHS[int(month) - 1]
    return name if parts == 2 or day == "01" else f"{int(day)} {name}"
