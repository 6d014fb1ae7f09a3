"""Finds chunks by name, range, status and time, and the DataSets of a Job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Literal

from ..model.ids import DataId, DatasetId, JobId
from ..model.partitions import Partitions, partitions_from_json
from ..model.ranges import DataIdRange
from .chunks import Chunk
from .database import Ledger, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDataset:
    """A DataSet that a Job reads or produces."""

    itemtype: Literal["IN", "OUT"]
    datasetid: DatasetId
    mapping: str
    partitions: Partitions | None


def is_dataset(transaction: Transaction, datasetid: DatasetId) -> bool:
    """Is it registered, or does it have a chunk?"""
    return bool(transaction.value("is_dataset", datasetid=datasetid))


def roots(ledger: Ledger) -> Callable[[DatasetId], str | None]:
    """Looks up the root of a DataSet, once, when it is first needed."""

    @cache
    def root(datasetid: DatasetId) -> str | None:
        with ledger.statement() as statement:
            return root_of(statement, datasetid)

    return root


def root_of(transaction: Transaction, datasetid: DatasetId) -> str | None:
    """None: it declares none, or is not registered."""
    found = transaction.rows("root_of", datasetid=datasetid)
    return found[0]["location"] if found else None


def outputs_of(transaction: Transaction, jobid: JobId) -> list[DatasetId]:
    return [DatasetId(row["datasetid"]) for row in transaction.rows("outputs_of", jobid=jobid)]


def job_datasets(transaction: Transaction, jobid: JobId) -> list[JobDataset]:
    return [
        JobDataset(
            itemtype=row["itemtype"],
            datasetid=DatasetId(row["datasetid"]),
            mapping=row["mapping"],
            partitions=partitions_from_json(row["partitions"]) if row["partitions"] is not None else None,
        )
        for row in transaction.rows("job_datasets", jobid=jobid)
    ]


def unfinished_chunks(transaction: Transaction, jobid: JobId, count: int) -> list[DataId]:
    """The chunks of a Job that are neither READY nor SKIPPED, in natural order."""
    return [DataId(row["dataid"]) for row in transaction.rows("unfinished_chunks", jobid=jobid, count=count)]


def known_dataids(transaction: Transaction, jobid: JobId) -> list[DataId]:
    """The dataids that the outputs of a Job have, or its inputs with the same dataid."""
    return [DataId(row["dataid"]) for row in transaction.rows("known_dataids", jobid=jobid)]


def matching_chunks(
    transaction: Transaction,
    datasetids: Sequence[DatasetId],
    *,
    names: Sequence[DataId] | None,
    ranges: Sequence[DataIdRange],
    statuses: Sequence[str] | None,
    since: datetime | None,
    until: datetime | None,
    stale: bool,
    other_code: bool,
    count: int,
) -> list[Chunk]:
    """In natural order. `names` None: all chunks."""
    chunks = transaction.rows(
        "matching_chunks",
        datasetids=list(datasetids),
        all=names is None,
        names=list(names or ()),
        lows=[bounds.low for bounds in ranges],
        highs=[bounds.high for bounds in ranges],
        statuses=list(statuses) if statuses else None,
        since=since,
        until=until,
        stale=stale,
        other_code=other_code,
        count=count,
    )
    return [Chunk(**row) for row in chunks]


def failed_chunks(
    transaction: Transaction,
    datasetids: Sequence[DatasetId] | None,
    *,
    since: datetime | None,
    until: datetime | None,
) -> list[Chunk]:
    """Of some DataSets, or of all."""
    wanted = list(datasetids) if datasetids is not None else None
    return [Chunk(**row) for row in transaction.rows("failed_chunks", datasetids=wanted, since=since, until=until)]
