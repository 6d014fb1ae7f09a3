"""Which chunks a command shall change, and what it says about them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from opendataflow_dagster.model.errors import InvalidInput

from .arguments import job_option, optional_dataset, some_chunks

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.model.ids import ChunkKey

_R = TypeVar("_R")


def chooses(function: Callable[..., _R]) -> Callable[..., _R]:
    """The command works on chosen chunks: of a DataSet or of a Job, by name, range or status, or all."""
    for decorate in (
        click.option("--all", "everything", is_flag=True, help="All chunks of the DataSet or Job."),
        click.option("--status", "statuses", multiple=True, metavar="WORD", help="Only with this status."),
        job_option,
        some_chunks,
        optional_dataset,
    ):
        function = decorate(function)
    return function


def chosen(
    ledger: Ledger,
    *,
    datasetid: str | None,
    jobid: str | None,
    chunks: Sequence[str],
    statuses: Sequence[str],
    everything: bool,
) -> list[ChunkKey]:
    """With --job the first word is a dataid, too."""
    from opendataflow_dagster.insight.selection import Selection, select_keys

    if jobid is not None and datasetid is not None:
        chunks, datasetid = (datasetid, *chunks), None
    if datasetid is None and jobid is None:
        raise InvalidInput("name a DataSet and its chunks, or a Job with --job")
    wanted = Selection(
        datasetid=datasetid,
        jobid=jobid,
        words=chunks,
        statuses=[word.upper() for word in statuses] or None,
    )
    if not chunks and not wanted.filters and not everything:
        raise InvalidInput(f"say which chunks of {datasetid or jobid}: name them, give a range A..B, or say --all")
    return select_keys(ledger, wanted)


def spoken(keys: Sequence[ChunkKey]) -> str:
    """`3 chunks (delays/2024-01-09, ...)`; many are counted by DataSet."""
    if len(keys) == 1:
        return str(keys[0])
    if len(keys) <= 5:
        return f"{len(keys)} chunks ({', '.join(str(one) for one in keys)})"
    by_dataset: dict[str, list[str]] = {}
    for one in keys:
        by_dataset.setdefault(one.datasetid, []).append(one.dataid)
    parts = [f"{name}: {len(dataids):,}" for name, dataids in by_dataset.items()]
    more = f", and {len(parts) - 5} more DataSets" if len(parts) > 5 else ""
    return f"{len(keys):,} chunks ({', '.join(parts[:5])}{more})"
