"""How commands show chunks that other code made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from opendataflow_dagster.insight.plan import OtherCodeRange


def show_ranges(ranges: Sequence[OtherCodeRange]) -> None:
    if not ranges:
        return
    output.heading("\nMade by other code than the current")
    output.table(
        ["DATASET", "chunks", "dataids", "made by", "current code"],
        [
            [found.datasetid, f"{found.chunks:,}", found.dataids, found.code_version, found.current_code]
            for found in ranges
        ],
        right=["chunks"],
    )
    for datasetid, of_dataset in {found.datasetid: found for found in ranges}.items():
        shown = sum(found.datasetid == datasetid for found in ranges)
        if of_dataset.ranges > shown:
            output.say(
                f"{datasetid} has {of_dataset.ranges - shown:,} more such ranges, "
                f"{output.counted(of_dataset.all_chunks, 'chunk')} in all."
            )
    output.say("They stay as they are. To rebuild some: odf resubmit DATASET DATAIDS --other-code")


def ranges_to_json(ranges: Sequence[OtherCodeRange]) -> list[dict[str, Any]]:
    return [{**output.jsonable(found), "dataids": found.dataids} for found in ranges]
