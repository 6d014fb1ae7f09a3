"""A heat-map of chunks for a terminal: a cell for each chunk, two rows of cells in a line; letters in a pipe."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import click

from .output import STYLES, is_terminal, printable

#: The worst first: when several chunks share a cell, it shows the worst of them. Unknown words are worse than all.
SEVERITY = ("FAILED", "HOLD", "RUNNING", "RESUBMIT", "PENDING", "SKIPPED", "READY")
LETTERS = dict(zip(SEVERITY, "XH>r-s.", strict=True))
MOST_CELLS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatCell:
    #: The first chunk of the cell.
    dataid: str
    status: str
    count: int


def cells(chunks: Sequence[tuple[str, str | None]], most: int = MOST_CELLS) -> list[HeatCell]:
    """Of (dataid, status), in their order."""
    size = max(1, -(-len(chunks) // most))
    portions = (chunks[begin : begin + size] for begin in range(0, len(chunks), size))
    return [
        HeatCell(dataid=portion[0][0], status=_worst([word for _, word in portion]), count=len(portion))
        for portion in portions
    ]


def show(drawn: Sequence[HeatCell]) -> None:
    in_colour = is_terminal() and not os.environ.get("NO_COLOR")
    label = min(24, max((len(one.dataid) for one in drawn), default=0))
    width = max(10, min(100, shutil.get_terminal_size((120, 24)).columns - label - 3))
    lines = [drawn[begin : begin + width] for begin in range(0, len(drawn), width)]
    if in_colour:
        for begin in range(0, len(lines), 2):
            click.echo(f"{_label(lines[begin], label)}  {_half_blocks(*lines[begin : begin + 2])}", color=True)
    else:
        for line in lines:
            click.echo(f"{_label(line, label)}  {''.join(LETTERS.get(one.status, '?') for one in line)}")
    known = [word for word in SEVERITY if any(one.status == word for one in drawn)]
    marks = {word: click.style("█", fg=_colour(word)) if in_colour else LETTERS[word] for word in reversed(known)}
    other = {} if all(one.status in SEVERITY for one in drawn) else {"another word": "?"}
    click.echo("   ".join(f"{mark} {word}" for word, mark in {**marks, **other}.items()), color=in_colour)


def _half_blocks(upper: Sequence[HeatCell], lower: Sequence[HeatCell] = ()) -> str:
    """Equal neighbours are coloured together: thousands of cells, few escapes."""
    text = ""
    pairs = [(one.status, lower[place].status if place < len(lower) else None) for place, one in enumerate(upper)]
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


def _colour(word: str) -> str:
    return STYLES.get(word, "bright_red")


def _worst(words: Sequence[str | None]) -> str:
    unknown = [word or "NULL" for word in words if word not in SEVERITY]
    return unknown[0] if unknown else min((str(word) for word in words), key=SEVERITY.index)
