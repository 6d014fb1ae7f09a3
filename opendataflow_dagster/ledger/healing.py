"""The statements of heal."""

from __future__ import annotations

from ..model.ids import ChunkKey, DataId, DatasetId
from .database import Row, Transaction


def release_expired(transaction: Transaction) -> list[tuple[ChunkKey, str]]:
    """The chunks whose lease expired, each with its new status."""
    return [(_key(row), row["status"]) for row in transaction.rows("heal_expired")]


def retry_failed(transaction: Transaction) -> list[ChunkKey]:
    """Failures that the policy of their Job retries."""
    return sorted({_key(row) for row in transaction.rows("heal_retries")})


def resubmit_stale(transaction: Transaction) -> list[ChunkKey]:
    """READY chunks with a newer input, of Jobs that cascade."""
    return sorted({_key(row) for row in transaction.rows("heal_cascade")})


def ask_again(transaction: Transaction) -> int:
    """Evaluate all refused chunks again; their number."""
    asked: int = transaction.value("heal_blocked")
    return asked


def close_runs(transaction: Transaction) -> int:
    """Runs that hold nothing and whose orchestrator never ended them; their number."""
    ended: int = transaction.value("heal_runs")
    return ended


def remove_strays(transaction: Transaction) -> int:
    """IN rows of claims that are gone; their number."""
    return len(transaction.rows("heal_strays"))


def rebuild_runnable(transaction: Transaction) -> tuple[int, int]:
    """How many chunks were added to the runnable set and removed from it."""
    rebuilt = transaction.one("rebuild_runnable")
    return rebuilt["added"], rebuilt["removed"]


def _key(row: Row) -> ChunkKey:
    return ChunkKey(datasetid=DatasetId(row["datasetid"]), dataid=DataId(row["dataid"]))
