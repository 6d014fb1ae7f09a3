"""The stale chunks: which they are, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..model.ids import ChunkKey, DataId, DatasetId
from . import rows
from .database import Transaction

#: More than any ledger has.
_ALL = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class StaleChunk:
    """A READY chunk that was made from a version of an input that is no longer current, or from a stale one."""

    key: ChunkKey
    #: None: its manifest is gone.
    version: int | None
    #: One cause. `is_direct`: the input has another version; otherwise it is itself stale.
    cause: ChunkKey
    is_direct: bool
    #: The version of the input that was used, and the current one; None: one without a manifest.
    used: int | None
    current: int | None
    since: datetime
    by: str | None
    #: The input with another version at the top of the chain.
    root: ChunkKey
    #: How many stale chunks further down have this one as their cause.
    below: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StaleCount:
    datasetid: DatasetId
    stale: int
    #: Those of which an own input has another version.
    direct: int
    since: datetime
    #: Heal makes them again by itself, if they are few.
    is_rebuilt: bool


def stale_chunks(
    transaction: Transaction,
    datasetids: Sequence[DatasetId] | None = None,
    dataids: Sequence[DataId] | None = None,
    count: int = _ALL,
) -> list[StaleChunk]:
    """Of all DataSets or some; direct causes first."""
    found = transaction.rows(
        "stale_chunks",
        datasetids=list(datasetids) if datasetids is not None else None,
        dataids=list(dataids) if dataids is not None else None,
        count=count,
    )
    return [
        StaleChunk(
            key=rows.key(row),
            cause=ChunkKey(datasetid=row["input_datasetid"], dataid=row["input_dataid"]),
            root=ChunkKey(datasetid=row["root_datasetid"], dataid=row["root_dataid"]),
            **{name: row[name] for name in ("version", "is_direct", "used", "current", "since", "by", "below")},
        )
        for row in found
    ]


def stale_counts(transaction: Transaction, datasetids: Sequence[DatasetId] | None = None) -> list[StaleCount]:
    """The DataSets that have stale chunks."""
    wanted = list(datasetids) if datasetids is not None else None
    return [StaleCount(**row) for row in transaction.rows("stale_counts", datasetids=wanted)]


def stale_keys(transaction: Transaction, datasetids: Sequence[DatasetId]) -> set[ChunkKey]:
    return {rows.key(row) for row in transaction.rows("stale_dataids", datasetids=list(datasetids))}


def chunks_to_refresh(transaction: Transaction, datasetids: Sequence[DatasetId] | None) -> list[tuple[ChunkKey, bool]]:
    """The stale READY chunks of these DataSets, and those further up that they are made from; producers first.

    False: it would wait for one of those that is on HOLD, FAILED or SKIPPED.
    """
    wanted = list(datasetids) if datasetids is not None else None
    found = transaction.rows("chunks_to_refresh", datasetids=wanted)
    return [(rows.key(row), row["is_free"]) for row in found]
