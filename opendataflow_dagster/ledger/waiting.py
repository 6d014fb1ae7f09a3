"""The chunks of a Job that do not run: refused, waiting for inputs, held or failed."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.ids import DataId, JobId
from ..model.verdict import Verdict
from . import rows
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkSample:
    """The first chunks of a set, and the size of the whole set."""

    dataids: tuple[DataId, ...]
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleReasons:
    """Why no chunk of a Job is ready, with an example of each kind."""

    refused: int
    refused_dataid: DataId | None
    failed: int
    #: Failed chunks whose retries are exhausted.
    gave_up: int
    gave_up_dataid: DataId | None


def refused_chunks(transaction: Transaction, jobid: JobId, count: int) -> list[Verdict]:
    """The newest stored verdict of each refused chunk."""
    return [rows.verdict(jobid, row) for row in transaction.rows("refused_chunks", jobid=jobid, count=count)]


def unready_chunks(transaction: Transaction, jobid: JobId, count: int) -> ChunkSample:
    """PENDING or RESUBMIT, with inputs that are not READY."""
    return _sample(transaction, "unready_chunks", jobid, count)


def held_chunks(transaction: Transaction, jobid: JobId, count: int) -> ChunkSample:
    """On HOLD, or in a status that only a foreign client knows."""
    return _sample(transaction, "held_chunks", jobid, count)


def idle_reasons(transaction: Transaction, jobid: JobId) -> IdleReasons:
    return IdleReasons(**transaction.one("idle_reasons", jobid=jobid))


def _sample(transaction: Transaction, statement: str, jobid: JobId, count: int) -> ChunkSample:
    chunks = transaction.rows(statement, jobid=jobid, count=count)
    dataids = tuple(DataId(row["dataid"]) for row in chunks)
    return ChunkSample(dataids=dataids, total=chunks[0]["total"] if chunks else 0)
