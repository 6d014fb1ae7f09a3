"""`odf chunks` and `odf chunk show`: the chunks of a DataSet, and the whole story of one."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import click

from . import heatmap, output
from .arguments import Moment, dataset_argument, some_chunks
from .options import as_json, open_ledger

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.chunks import Chunk


@click.command()
@dataset_argument
@some_chunks
@click.option("--status", "statuses", multiple=True, metavar="WORD", help="Only with this status; may be repeated.")
@click.option("--since", type=Moment(), help="Only those that changed since then: a time, or 3h.")
@click.option("--until", type=Moment(), help="Only those that changed before.")
@click.option("--list", "as_list", is_flag=True, help="A table, instead of a heat-map.")
@as_json
def chunks(
    datasetid: str,
    chunks: tuple[str, ...],
    statuses: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    as_list: bool,
    json_wanted: bool,
) -> None:
    """The chunks of a DataSet, as a heat-map or a list, in their natural order.

    \b
    Example:
      odf chunks flights
      odf chunks flights 2024-01-01..2024-01-31
      odf chunks flights --status FAILED --since 3h --list
      odf chunks flights --json
    """
    from opendataflow_dagster.insight.selection import Selection, select_chunks

    wanted = Selection(
        datasetid=datasetid,
        words=chunks,
        statuses=[word.upper() for word in statuses] or None,
        since=since,
        until=until,
    )
    with open_ledger() as ledger:
        found = select_chunks(ledger, wanted)
    if json_wanted:
        output.print_json({"datasetid": datasetid, "chunks": found})
    elif not found:
        output.say(f"No chunk of {datasetid} is like that.")
    elif as_list:
        _list(found)
    else:
        counts = Counter(one.status or "NULL" for one in found)
        said = ", ".join(f"{count:,} {word}" for word, count in counts.most_common())
        output.heading(f"{datasetid}: {output.counted(len(found), 'chunk')}, {said}")
        drawn = heatmap.cells([(one.dataid, one.status) for one in found])
        if drawn[0].count > 1:
            output.say(f"(a cell is {drawn[0].count} chunks, and shows the worst)")
        heatmap.show(drawn)


def _list(found: list[Chunk]) -> None:
    output.table(
        ["dataid", "status", "version", "attempt", "changed", "reason"],
        [
            [
                one.dataid,
                output.status(one.status),
                str(one.version or ""),
                str(one.attempt),
                output.moment(one.modified),
                one.reason or "",
            ]
            for one in found
        ],
        right=["version", "attempt"],
    )


@click.group()
def chunk() -> None:
    """One chunk: its whole story.

    \b
    Example:
      odf chunk show delays 2024-01-03
    """


@chunk.command("show")
@dataset_argument
@click.argument("dataid")
@as_json
def show(datasetid: str, dataid: str, json_wanted: bool) -> None:
    """The whole story of a chunk: attempts, answers, versions, inputs, times, and who did what.

    \b
    Example:
      odf chunk show delays 2024-01-03
      odf chunk show delays 2024-01-03 --json
    """
    from opendataflow_dagster.insight.story import story
    from opendataflow_dagster.model.ids import ChunkKey, data_id, dataset_id

    from .story import tell

    with open_ledger() as ledger:
        told = story(ledger, ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid)))
    if json_wanted:
        output.print_json(told)
    else:
        tell(told)
