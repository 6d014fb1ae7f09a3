"""Pieces of HTML that several sections use. Everything that comes from the ledger is escaped here."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TypeAlias

from opendataflow_dagster.insight.heat_map import WORST_FIRST
from opendataflow_dagster.model.ids import ChunkKey

from .. import heatmap
from ..output import listing, printable, span

#: HTML, with all texts in it escaped.
Html: TypeAlias = str

#: Worst first.
LETTERS = {status: {**heatmap.LETTERS, "missing": "m"}[status] for status in WORST_FIRST}
#: Not a status: chunks of any status can be late.
_LATE = "late"
_LONGEST_TEXT = 2_000
_LONGEST_NAME = 48


class Stories:
    """Where on the page the story of a chunk is."""

    def __init__(self, keys: Iterable[ChunkKey]) -> None:
        self._ids: Mapping[ChunkKey, str] = {key: _identifier(key) for key in keys}

    def find(self, key: ChunkKey) -> str | None:
        """The same in each report, so that a link and an open story outlive a reload."""
        return self._ids.get(key)

    def link(self, key: ChunkKey) -> Html:
        """The chunk, linked to its story if the page has it."""
        story = self.find(key)
        return name(key) if story is None else f'<a href="#story-{story}">{name(key)}</a>'


def text(value: object, *, lines: bool = False) -> Html:
    """`lines`: keep its lines."""
    shown = "\n".join(map(printable, str(value).splitlines())) if lines else printable(str(value))
    return escape(shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}…")


def names(items: Collection[object], shown: int = 3) -> Html:
    return name(listing(items, shown))


def name(value: object) -> Html:
    """A name, dataid or code, which does not wrap, unless it is longer than a column may be wide."""
    shown = text(value)
    return f'<span class="name">{shown}</span>' if len(str(value)) <= _LONGEST_NAME else shown


def show(key: ChunkKey) -> str:
    """The command that prints the story of a chunk. A name that looks like an option is an argument."""
    words = [key.datasetid, key.dataid]
    separator = ["--"] if any(word.startswith("-") for word in words) else []
    return shlex.join(["odf", "chunk", "show", *separator, *words])


def command(typed: str) -> Html:
    """A command as one types it, with a button that copies it."""
    return f'<code>{text(typed)}</code> <button type="button" class="copy" data-copy="{escape(typed)}">copy</button>'


def moment(at: datetime | None) -> Html:
    """In the time zone of the page, with its age."""
    if at is None:
        return ""
    passed = datetime.now(UTC) - at
    age = f"{span(passed)} ago" if passed.total_seconds() >= 0 else f"in {span(-passed)}"
    return f'<time datetime="{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}">{local(at)}</time> <small>{age}</small>'


def local(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def letter(status: str) -> str:
    return "!" if status == _LATE else LETTERS.get(status, "?")


def badge(status: str) -> Html:
    """The letter of a status, beside a text that names it."""
    return f'<span class="mark {_css(status)}"><i aria-hidden="true">{escape(letter(status))}</i></span>'


def mark(status: str, number: int | None = None) -> Html:
    """A status: never colour alone, always its letter and its name."""
    figure = "" if number is None else f"{number:,} "
    return f'<span class="mark {_css(status)}"><i>{escape(letter(status))}</i>{figure}{text(status)}</span>'


def colour(status: str) -> str:
    """The class that colours a shape of a status."""
    return f"f-{_css(status)}"


def section(identifier: str, title: str, *parts: Html) -> Html:
    return f'<section id="{identifier}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def table(columns: Sequence[str], rows: Sequence[Sequence[Html]], *, right: Collection[str] = ()) -> Html:
    """`right`: the right-aligned columns."""
    kinds = [' class="n"' if name in right else "" for name in columns]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(columns, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f'<td{kind} data-label="{escape(name)}">{cell}</td>'
            for name, kind, cell in zip(columns, kinds, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _identifier(key: ChunkKey) -> str:
    return hashlib.sha256(f"{key.datasetid}/{key.dataid}".encode()).hexdigest()[:12]


def _css(status: str) -> str:
    return status if status in LETTERS or status == _LATE else "other"
