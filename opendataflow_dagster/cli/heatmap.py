"""A heat-map of chunks: coloured half blocks on a terminal, two rows of cells per line; letters in a pipe."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import click

from .output import STYLES, draw, is_terminal, printable

#: READY, but made from what is no longer current. In lower case, because it is no status.
STALE = "stale"
#: Worst first: a cell of several chunks shows the worst of them. An unknown status is worse than all of these.
SEVERITY = ("FAILED", "HOLD", STALE, "RUNNING", "RESUBMIT", "PENDING", "SKIPPED", "READY")
LETTERS = dict(zip(SEVERITY, "XH~>r-s.", strict=True))
MOST_CELLS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatCell:
    #: Of the first chunk of the cell.
    dataid: str
    status: str
    count: int


def cells(chunks: Sequence[tuple[str, str | None]], most: int = MOST_CELLS) -> list[HeatCell]:
    """For (dataid, status) pairs, in order."""
    size = max(1, -(-len(chunks) // most))
    portions = (chunks[begin : begin + size] for begin in range(0, len(chunks), size))
    return [
        HeatCell(dataid=portion[0][0], status=_worst([status for _, status in portion]), count=len(portion))
        for portion in portions
    ]


def show(drawn: Sequence[HeatCell]) -> None:
    in_colour = is_terminal() and not os.environ.get("NO_COLOR")
    label = min(24, max((len(cell.dataid) for cell in drawn), default=0))
    width = max(10, min(100, shutil.get_terminal_size((120, 24)).columns - label - 3))
    lines = [drawn[begin : begin + width] for begin in range(0, len(drawn), width)]
    if in_colour:
        for begin in range(0, len(lines), 2):
            draw(f"{_label(lines[begin], label)}  {_half_blocks(*lines[begin : begin + 2])}", in_colour)
    else:
        for line in lines:
            draw(f"{_label(line, label)}  {''.join(LETTERS.get(cell.status, '?') for cell in line)}", in_colour)
    known = [status for status in SEVERITY if any(cell.status == status for cell in drawn)]
    marks = {name: click.style("█", fg=_colour(name)) if in_colour else LETTERS[name] for name in reversed(known)}
    other = {} if all(cell.status in SEVERITY for cell in drawn) else {"other": "?"}
    draw("   ".join(f"{mark} {name}" for name, mark in {**marks, **other}.items()), in_colour)


def _half_blocks(upper: Sequence[HeatCell], lower: Sequence[HeatCell] = ()) -> str:
    """Equal neighbours share one escape sequence: thousands of cells need few."""
    text = ""
    pairs = [(cell.status, lower[place].status if place < len(lower) else None) for place, cell in enumerate(upper)]
    begin = 0
    for place in range(1, len(pairs) + 1):
        if place == len(pairs) or pairs[place] != pairs[begin]:
            above, below = pairs[begin]
            text += click.style(
                "▀" * (place - begin), fg=_colour(above), bg=_colour(below) if below is not None else None
            )
            begin = place
    return text


def _label(line: Sequence[HeatCell], width: int) -> str:
    return printable(line[0].dataid)[:width].ljust(width)


def _colour(status: str) -> str:
    return STYLES.get(status, "bright_red")


def _worst(statuses: Sequence[str | None]) -> str:
    unknown = [status or "NULL" for status in statuses if status not in SEVERITY]
    return unknown[0] if unknown else min((str(status) for status in statuses), key=SEVERITY.index)
