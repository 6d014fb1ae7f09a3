"""How commands show what is late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from . import output

if TYPE_CHECKING:
    from opendataflow_dagster.insight.deadlines import Deadlines
    from opendataflow_dagster.model.ids import DatasetId


@dataclass(frozen=True, kw_only=True, slots=True)
class Late:
    """One line about a DataSet."""

    datasetid: DatasetId
    #: How many chunks are late; None: it lacks new data.
    chunks: int | None
    what: str
    since: datetime | None


def find_late(deadlines: Deadlines) -> list[Late]:
    lines: list[Late] = []
    for datasetid in dict.fromkeys(chunk.datasetid for chunk in deadlines.late):
        chunks = deadlines.late_of(datasetid)
        newest = f"{chunks[0].dataid} is {chunks[0].status or 'missing'}"
        more = f" and {output.counted(len(chunks) - 1, 'earlier chunk')}" if len(chunks) > 1 else ""
        lines.append(Late(datasetid=datasetid, chunks=len(chunks), what=newest + more, since=chunks[-1].due))
    for freshness in deadlines.not_fresh:
        expected = f"expected within {output.span(freshness.fresh_within)}"
        age = f"no new data for {output.span(freshness.age)}" if freshness.age is not None else "no data yet"
        lines.append(Late(datasetid=freshness.datasetid, chunks=None, what=f"{age}, {expected}", since=freshness.due))
    return lines


def show(deadlines: Deadlines) -> None:
    rows = [
        [late.datasetid, f"{late.chunks:,}" if late.chunks else "", late.what, output.moment(late.since)]
        for late in find_late(deadlines)
    ]
    if rows:
        output.heading("\nLate")
        output.table(["DATASET", "late", "what", "since"], rows, right=["late"])


def lines(deadlines: Deadlines) -> list[str]:
    """For a message."""
    found: list[str] = []
    for late in find_late(deadlines):
        since = f", since {output.moment(late.since)}" if late.since else ""
        # A foreign client may have written any text as the status.
        found.append(output.printable(f"- late: {late.datasetid}, {late.what}{since}"))
    return found
