"""Figures over whole tables: chunks by status, what waits and runs, pace, durations and throughput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..model.ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, RunId
from . import rows
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetCounts:
    datasetid: DatasetId
    #: The producing Job; None for an external DataSet.
    jobid: JobId | None = None
    is_registered: bool = False
    #: Chunks by status, including words that only a foreign client knows.
    counts: Mapping[str, int] = field(default_factory=dict)
    #: Last change of the chunk that has been PENDING or RESUBMIT the longest.
    oldest_waiting: datetime | None = None
    #: One of those chunks.
    first_waiting: DataId | None = None
    #: Chunks that are expected and do not exist: past partitions, or without declared partitions what planned chunks of
    #: consumers need.
    missing: int = 0
    #: READY chunks made by code other than the DataSet's.
    other_code: int = 0
    #: When its newest READY chunk became READY, and how long ago that is.
    newest_ready: datetime | None = None
    age: timedelta | None = None
    #: How large `age` may be; None: as large as it is.
    fresh_within: timedelta | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NeededChunks:
    """Chunks that consumers need and that do not exist."""

    datasetid: DatasetId
    missing: int
    #: One of them.
    dataid: DataId


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnableCounts:
    runnable: int = 0
    blocked: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningChunk:
    datasetid: DatasetId
    jobid: JobId
    dataid: DataId
    claim_id: ClaimId
    attempt: int
    run_id: RunId | None
    since: datetime | None
    lease_until: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkDurations:
    """From claim to publication, over the chunks of a Job."""

    jobid: JobId
    chunks: int
    median: timedelta
    p95: timedelta
    longest: timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """What was published in a span of time."""

    begins: datetime
    versions: int
    rows: int
    bytes: int
    #: Whether all of the span was counted: the ledger reads only so many of the newest versions.
    is_complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CellCount:
    """The chunks of one status in a cell of a heat-map."""

    datasetid: DatasetId
    cell: int
    #: `missing`: declared past partitions without a chunk.
    status: str
    chunks: int
    #: The first and the last chunk of the cell, if they have this status.
    first: DataId | None
    last: DataId | None
    #: One of the chunks.
    example: DataId
    #: Of the newest change.
    since: datetime | None
    #: Of one of the chunks.
    reason: str | None


def allow_table_scans(transaction: Transaction) -> None:
    """For statements that read a whole table; until the transaction ends."""
    transaction.rows("allow_table_scans")


def dataset_counts(transaction: Transaction) -> list[DatasetCounts]:
    return [DatasetCounts(**row) for row in transaction.rows("dataset_counts")]


def needed_chunks(transaction: Transaction) -> list[NeededChunks]:
    """Of DataSets without declared partitions."""
    return [NeededChunks(**row) for row in transaction.rows("needed_chunks")]


def newest_missing(transaction: Transaction, datasetids: Sequence[DatasetId], count: int) -> list[ChunkKey]:
    """Past partitions without a chunk."""
    found = transaction.rows("newest_missing", datasetids=list(datasetids), count=count) if datasetids else []
    return [rows.key(row) for row in found]


def first_unready(transaction: Transaction, waiting: Mapping[DatasetId, DataId]) -> list[ChunkKey]:
    """The first chunk that waits and cannot run. `waiting`: the first of each DataSet that waits."""
    found = (
        transaction.rows("first_unready", datasetids=list(waiting), dataids=list(waiting.values())) if waiting else []
    )
    return [rows.key(row) for row in found]


def runnable_counts(transaction: Transaction) -> dict[JobId, RunnableCounts]:
    return {
        JobId(row["jobid"]): RunnableCounts(runnable=row["runnable"], blocked=row["blocked"])
        for row in transaction.rows("runnable_counts")
    }


def runnable_count(transaction: Transaction, jobid: JobId) -> RunnableCounts:
    return RunnableCounts(**transaction.one("runnable_count", jobid=jobid))


def paces(transaction: Transaction) -> dict[DatasetId, float]:
    """Versions per minute of each DataSet that has published recently."""
    return {DatasetId(row["datasetid"]): row["pace"] for row in transaction.rows("paces") if row["pace"] is not None}


def running_chunks(transaction: Transaction, count: int) -> list[RunningChunk]:
    """The live claims, oldest first."""
    return [RunningChunk(**row) for row in transaction.rows("running_chunks", count=count)]


def chunk_durations(transaction: Transaction, newest: int) -> list[ChunkDurations]:
    """Over so many of the newest versions."""
    return [ChunkDurations(**row) for row in transaction.rows("chunk_durations", count=newest)]


def throughput(transaction: Transaction, bounds: Sequence[datetime], newest: int) -> list[Throughput]:
    """Between each two of the bounds, over so many of the newest versions."""
    found = transaction.rows("throughput", bounds=list(bounds), count=newest)
    return [Throughput(**row) for row in found]


def heat_cells(
    transaction: Transaction, datasetids: Sequence[DatasetId], *, incomplete: Sequence[DatasetId], most: int
) -> list[CellCount]:
    """In natural order, at most so many cells of each DataSet. `incomplete`: the DataSets with missing chunks."""
    found = transaction.rows("heat_cells", datasetids=list(datasetids), incomplete=list(incomplete), most=most)
    return [CellCount(**row) for row in found]
