"""`odf chunks`: the chunks of a DataSet, as a heat-map or a list."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import click

from . import heatmap, output
from .arguments import chunks_argument, dataset_argument
from .connection import open_ledger
from .options import json_option
from .parsing import Moment

if TYPE_CHECKING:
    from opendataflow_dagster.insight.selection import Chunk


@click.command()
@dataset_argument
@chunks_argument
@click.option("--status", "statuses", multiple=True, metavar="STATUS", help="Only chunks with this status; repeatable.")
@click.option("--other-code", is_flag=True, help="Only READY chunks made by code other than the current.")
@click.option("--stale", is_flag=True, help="Only stale chunks: made from what is no longer current.")
@click.option("--since", type=Moment(), help="Only chunks changed since this time, or an age such as 3h.")
@click.option("--until", type=Moment(), help="Only chunks changed before this time.")
@click.option("--list", "as_list", is_flag=True, help="Show a table instead of a heat-map.")
@json_option
def chunks(
    datasetid: str,
    chunks: tuple[str, ...],
    statuses: tuple[str, ...],
    stale: bool,
    other_code: bool,
    since: datetime | None,
    until: datetime | None,
    as_list: bool,
    json_wanted: bool,
) -> None:
    """Show the chunks of a DataSet in natural order, as a heat-map or a list.

    \b
    Example:
      odf chunks flights
      odf chunks flights 2024-01-01..2024-01-31
      odf chunks flights --status FAILED --since 3h --list
      odf chunks flights --stale --list
      odf chunks flights --other-code --list
      odf chunks flights --json
    """
    from opendataflow_dagster.insight.selection import Selection, select_chunks

    wanted = Selection(
        datasetid=datasetid,
        words=chunks,
        statuses=[status.upper() for status in statuses] or None,
        since=since,
        until=until,
        stale=stale,
        other_code=other_code,
    )
    with open_ledger() as ledger:
        selected = select_chunks(ledger, wanted)
    if json_wanted:
        output.print_json({"datasetid": datasetid, "chunks": selected})
    elif not selected:
        output.say(f"{datasetid}: no matching chunks.")
    elif as_list:
        _print_list(selected)
    else:
        _print_heatmap(datasetid, selected)


def _print_list(selected: list[Chunk]) -> None:
    has_other_code = any(chunk.is_other_code for chunk in selected)
    output.table(
        [
            "dataid",
            "status",
            "version",
            *(["made by other code"] if has_other_code else []),
            "attempt",
            "changed",
            "reason",
        ],
        [
            [
                chunk.dataid,
                output.status(_state(chunk)),
                str(chunk.version or ""),
                *([chunk.code_version or "" if chunk.is_other_code else ""] if has_other_code else []),
                str(chunk.attempt),
                output.moment(chunk.modified),
                chunk.reason or "",
            ]
            for chunk in selected
        ],
        right=["version", "attempt"],
    )


def _print_heatmap(datasetid: str, selected: list[Chunk]) -> None:
    counts = Counter(_state(chunk) or "NULL" for chunk in selected)
    by_status = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    other_code = sum(chunk.is_other_code for chunk in selected)
    outdated = f"; {other_code:,} made by other code" if other_code else ""
    output.heading(f"{datasetid}: {output.counted(len(selected), 'chunk')}, {by_status}{outdated}")
    cells = heatmap.cells([(chunk.dataid, _state(chunk)) for chunk in selected])
    if cells[0].count > 1:
        output.say(f"(each cell stands for {cells[0].count} chunks and shows the worst status)")
    heatmap.show(cells)


def _state(chunk: Chunk) -> str | None:
    """A READY chunk that is stale is shown as such."""
    return heatmap.STALE if chunk.is_stale else chunk.status
