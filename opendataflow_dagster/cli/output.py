"""Output of `odf`: tables with colours on a terminal, plain text in a pipe, JSON for programs.

All that `odf` prints goes through this module, so a text of another client never controls a terminal.

Tables are never truncated: in a pipe each row is one line. On a terminal texts and times wrap; names, dataids and codes
stay whole.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

import click

from opendataflow_dagster.model.verdict import Verdict

from ..model.text import counted as counted
from ..model.text import escaped
from ..model.text import listing as listing
from ..model.text import printable as printable

#: Text, or text with a style.
Cell: TypeAlias = "str | tuple[str, str]"

#: Colours of statuses in tables and heat-maps.
STYLES = {
    "READY": "green",
    "RUNNING": "blue",
    "RESUBMIT": "yellow",
    "PENDING": "white",
    "FAILED": "red",
    "HOLD": "magenta",
    "SKIPPED": "cyan",
    "stale": "bright_yellow",
}

#: Columns that give way on a narrow terminal, between words: times, and lists of names.
_WRAPPING = frozenset(
    (
        *("at", "changed", "first", "last", "lease expires", "published", "since", "started", "waiting since"),
        *("by", "consumers", "inputs", "made from", "outputs"),
    )
)
#: Texts: in them, a word that is longer than this is broken, too; most are paths.
_TEXTS = frozenset(
    (
        *("cause", "description", "detail", "example", "location", "new", "next step", "old", "reason", "row", "value"),
        *("values", "waits for", "what"),
    )
)
_LONG_WORD = 40


def is_terminal() -> bool:
    return sys.stdout.isatty()


def write(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Text of any number of lines, with control characters escaped."""
    click.echo(escaped(text, keep="\n\t"), err=err, nl=nl)


def write_exactly(text: str, *, nl: bool = True) -> None:
    """For another program: a terminal gets it with control characters escaped."""
    if is_terminal():
        write(text, nl=nl)
    else:
        click.echo(text, nl=nl)


def draw(text: str, in_colour: bool) -> None:
    """Text that we have coloured ourselves."""
    click.echo(text, color=in_colour)


def print_json(value: object) -> None:
    write(json_text(value, indent=2))


def json_text(value: object, indent: int | None = None) -> str:
    text = json.dumps(jsonable(value), indent=indent, ensure_ascii=False)
    # JSON itself escapes only the control characters of ASCII.
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def print_result(json_wanted: bool, value: object, text: str) -> None:
    """As JSON, or as this exact text."""
    if json_wanted:
        print_json(value)
    else:
        write_exactly(text)


def jsonable(value: object) -> Any:
    """Dataclasses as objects, times as ISO 8601 in UTC, durations in seconds."""
    if isinstance(value, Verdict):
        # Sentences, not the problems that they are made from.
        names = ("jobid", "dataid", "answers", "inputs", "asked", "claim_id")
        return {name: jsonable(getattr(value, name)) for name in names}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).isoformat()
        case timedelta():
            return value.total_seconds()
        case Path():
            return str(value)
        case Mapping():
            return {str(name): jsonable(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [jsonable(item) for item in value]
    return value


def say(text: str) -> None:
    """Print one line."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    write(indent + printable(text.lstrip(" ")))


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Sequence[str] = ()) -> None:
    """`right` names the right-aligned columns."""
    cells = [[_parts(cell) for cell in row] for row in rows]
    if is_terminal():
        _rich_table(columns, cells, right)
    else:
        _plain_table(columns, cells, right)


def heading(text: str) -> None:
    if text.startswith("\n"):
        write()
    if is_terminal():
        click.secho(printable(text.strip()), bold=True)
    else:
        say(text.strip())


def status(name: str | None) -> Cell:
    text = name if name is not None else "NULL"
    return text, STYLES.get(text, "bold red")


def moment(at: datetime | None, *, now: datetime | None = None) -> str:
    """`2024-01-05 14:03 (3 h ago)`, in local time."""
    if at is None:
        return ""
    passed = (now or datetime.now(UTC)) - at
    age = f"{span(passed)} ago" if passed >= timedelta(0) else f"in {span(-passed)}"
    return f"{at.astimezone():%Y-%m-%d %H:%M} ({age})"


def span(duration: timedelta | None) -> str:
    """A rounded duration: `40 s`, `12 min`, `3 h`, `5 d`."""
    if duration is None:
        return ""
    seconds = duration.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size):,} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def _parts(cell: Cell) -> tuple[str, str]:
    text, style = (cell, "") if isinstance(cell, str) else cell
    return printable(text), style


def _plain_table(columns: Sequence[str], rows: list[list[tuple[str, str]]], right: Sequence[str]) -> None:
    lines = [list(columns), *([text for text, _ in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        padded = [
            text.rjust(width) if name in right else text.ljust(width)
            for text, width, name in zip(line, widths, columns, strict=True)
        ]
        write("  ".join(padded).rstrip())


def _rich_table(columns: Sequence[str], rows: list[list[tuple[str, str]]], right: Sequence[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    lines = [list(columns), *([text for text, _ in row] for row in rows)]
    space = 3 * len(columns) - 1
    widths = _widths(columns, lines, console.width - space)
    for name, width in zip(columns, widths, strict=True):
        shown.add_column(name, justify="right" if name in right else "left", overflow="fold", width=width)
    for row in rows:
        # Text, not markup: a dataid may contain [brackets].
        shown.add_row(*(Text(text, style=style) for text, style in row))
    # Where the names alone are wider than the terminal, it wraps the line itself: a copied name has no break in it.
    console.width = max(console.width, sum(widths) + space)
    console.print(shown)


def _widths(columns: Sequence[str], lines: Sequence[Sequence[str]], available: int) -> list[int]:
    """Texts give way first, then times and lists, and then long words in texts."""
    from rich.cells import cell_len

    whole = [max(cell_len(line[place]) for line in lines) for place in range(len(columns))]
    words = [
        max(cell_len(word) for line in lines for word in line[place].split() or [""]) for place in range(len(columns))
    ]
    texts = [
        max(word, min(_LONG_WORD, full)) if name in _TEXTS else full
        for name, word, full in zip(columns, words, whole, strict=True)
    ]
    wrapped = [
        word if name in _TEXTS | _WRAPPING else full for name, word, full in zip(columns, words, whole, strict=True)
    ]
    broken = [min(width, _LONG_WORD) if name in _TEXTS else width for name, width in zip(columns, wrapped, strict=True)]
    widths = whole
    for least in (texts, wrapped, broken):
        while sum(widths) > available and (
            wide := [place for place, width in enumerate(widths) if width > least[place]]
        ):
            widths[max(wide, key=lambda place: widths[place])] -= 1
    return widths
