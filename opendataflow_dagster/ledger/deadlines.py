"""Chunks that missed their deadline, and how old the newest data is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..model.ids import DataId, DatasetId
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class LateChunk:
    """Expected by `due`, and not READY."""

    datasetid: DatasetId
    dataid: DataId
    #: None: it does not exist.
    status: str | None
    due: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Freshness:
    """Of a DataSet that declares `fresh_within`."""

    datasetid: DatasetId
    fresh_within: timedelta
    #: When its newest READY chunk became READY, and how long ago that is. None: it has none.
    newest: datetime | None
    age: timedelta | None

    @property
    def is_fresh(self) -> bool:
        return self.age is not None and self.age <= self.fresh_within

    @property
    def due(self) -> datetime | None:
        """Since when it is not fresh, or will not be."""
        return self.newest + self.fresh_within if self.newest is not None else None


def late_chunks(transaction: Transaction) -> list[LateChunk]:
    """Of each DataSet the newest first."""
    return [LateChunk(**row) for row in transaction.rows("late_chunks")]


def freshness(transaction: Transaction) -> list[Freshness]:
    return [Freshness(**row) for row in transaction.rows("freshness")]
