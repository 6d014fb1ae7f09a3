"""The chunks of a Job that do not run: missing, refused, waiting, held or failed; and the faults of the Job itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..model.ids import DataId, DatasetId, JobId
from ..model.verdict import Verdict
from . import rows
from .database import Row, Transaction


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """The ledger's answers for a chunk."""

    verdict: Verdict
    #: Its inputs are READY, and somebody asked for it: by a row of its own, or an input with the equal dataid.
    is_runnable: bool
    #: The runnable set has it.
    is_evaluated: bool


FaultKind: TypeAlias = Literal["ITEM", "UNREGISTERED", "NO_OUTPUT", "NO_DAY", "UNSETTLED", "LEFT_OVER"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What is wrong with a Job, whatever its chunks are."""

    kind: FaultKind
    #: The item of the Job.
    itemtype: str
    datasetid: DatasetId | None
    dataid: DataId | None
    count: int
    problem: str | None


def ask_each(transaction: Transaction, chunks: Sequence[tuple[JobId, DataId]]) -> dict[tuple[JobId, DataId], Asked]:
    """The answers for chunks of several Jobs. Jobs that read all chunks of a DataSet are left out."""
    jobids, dataids = [jobid for jobid, _ in chunks], [dataid for _, dataid in chunks]
    answered = transaction.rows("ask_each", jobids=jobids, dataids=dataids) if chunks else []
    return {(row["jobid"], row["dataid"]): _asked(row["jobid"], row) for row in answered}


def ask(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> list[Asked]:
    answered = transaction.rows("ask_whether_asked_for", jobid=jobid, dataids=list(dataids)) if dataids else []
    return [_asked(jobid, row) for row in answered]


def _asked(jobid: JobId, row: Row) -> Asked:
    return Asked(verdict=rows.verdict(jobid, row), is_runnable=row["is_runnable"], is_evaluated=row["is_evaluated"])


def missing_chunks(transaction: Transaction, jobid: JobId, count: int) -> ChunkSample:
    """Expected of the Job, but neither planned nor in the runnable set."""
    return _sample(transaction, "missing_chunks", jobid, count)


def faults(transaction: Transaction, jobid: JobId) -> list[Fault]:
    return [Fault(**row) for row in transaction.rows("job_faults", jobid=jobid)]


def refused_chunks(transaction: Transaction, jobid: JobId, count: int) -> list[Verdict]:
    """The newest stored verdict of each refused chunk, if there is one."""
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
