"""How commands show what is late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import output

if TYPE_CHECKING:
    from opendataflow_dagster.insight.deadlines import Deadlines


def show(deadlines: Deadlines) -> None:
    rows = list(_rows(deadlines))
    if rows:
        output.heading("\nLate")
        output.table(["DATASET", "late", "what", "since"], rows, right=["late"])


def lines(deadlines: Deadlines) -> list[str]:
    """For a message."""
    return [f"- late: {name}, {what}, since {since}" for name, _, what, since in _rows(deadlines)]


def _rows(deadlines: Deadlines) -> Iterator[list[str]]:
    for datasetid in dict.fromkeys(chunk.datasetid for chunk in deadlines.late):
        chunks = deadlines.late_of(datasetid)
        newest = f"{chunks[0].dataid} is {chunks[0].status or 'missing'}"
        more = f" and {output.counted(len(chunks) - 1, 'earlier chunk')}" if len(chunks) > 1 else ""
        yield [datasetid, f"{len(chunks):,}", f"{newest}{more}", output.moment(chunks[-1].due)]
    for freshness in deadlines.not_fresh:
        expected = f"expected within {output.span(freshness.fresh_within)}"
        age = f"no new data for {output.span(freshness.age)}" if freshness.age is not None else "no data yet"
        yield [freshness.datasetid, "", f"{age}, {expected}", output.moment(freshness.due)]
