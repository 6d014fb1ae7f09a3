"""Removes Jobs and DataSets from the registry."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.ids import ChunkKey, DatasetId, JobId
from . import rows
from .database import Transaction


def hold_registry(transaction: Transaction) -> None:
    """No other change of the registry until the transaction ends."""
    transaction.rows("lock_registry")


def running_chunks(transaction: Transaction, jobid: JobId) -> list[ChunkKey]:
    """The chunks that the Job is making, whoever claimed them."""
    return [rows.key(row) for row in transaction.rows("running_chunks_of", jobid=jobid)]


def chunk_counts(transaction: Transaction, datasetids: Sequence[DatasetId]) -> dict[DatasetId, dict[str, int]]:
    """By DataSet and status."""
    counts: dict[DatasetId, dict[str, int]] = {}
    for row in transaction.rows("chunk_counts", datasetids=list(datasetids)):
        counts.setdefault(DatasetId(row["datasetid"]), {})[row["status"]] = row["chunks"]
    return counts


def users_of(transaction: Transaction, datasetid: DatasetId) -> list[tuple[JobId, str]]:
    """The Jobs that name the DataSet, each with the itemtype; its producer first."""
    return [(JobId(row["jobid"]), row["itemtype"]) for row in transaction.rows("users_of", datasetid=datasetid)]


def remove_job(transaction: Transaction, jobid: JobId) -> None:
    for statement in ("remove_items", "remove_policy", "remove_limits"):
        transaction.run(statement, jobid=jobid)


def remove_dataset(transaction: Transaction, datasetid: DatasetId) -> None:
    """With its chunks."""
    for statement in ("remove_chunks", "remove_dataset"):
        transaction.run(statement, datasetid=datasetid)
