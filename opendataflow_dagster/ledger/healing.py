"""The statements of heal. Each part first finds chunks and then changes them, in portions that the caller chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..model.ids import ChunkKey, DataId, DatasetId, JobId
from ..model.status import Status
from .database import Row, Transaction

#: How many rows each heal looks at for lost wake-ups; a ledger of a million rows takes a hundred heals.
PATROL = 10_000

Act: TypeAlias = Literal["heal_expired", "heal_retries", "heal_stale"]


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class OutRow:
    """An OUT row that heal may change."""

    datasetid: DatasetId
    jobid: JobId
    dataid: DataId

    def __str__(self) -> str:
        return f"{self.datasetid}/{self.dataid}"


def expired_claims(transaction: Transaction) -> list[OutRow]:
    return _found(transaction.rows("expired_claims"))


def retrying_jobs(transaction: Transaction) -> list[JobId]:
    return [row["jobid"] for row in transaction.rows("retrying_jobs")]


def failures_to_retry(transaction: Transaction, jobids: Sequence[JobId]) -> list[OutRow]:
    return _found(transaction.rows("failures_to_retry", jobids=list(jobids)))


@dataclass(frozen=True, kw_only=True, slots=True)
class RebuildingDataset:
    """A DataSet whose chunks are rebuilt when an input has a new version."""

    datasetid: DatasetId
    jobid: JobId
    #: Its stale chunks, and those that will be when an input that is RESUBMIT has been made.
    stale: int


def rebuilding_datasets(transaction: Transaction) -> list[RebuildingDataset]:
    return [RebuildingDataset(**row) for row in transaction.rows("rebuilding_datasets")]


def chunks_to_rebuild(transaction: Transaction, datasetids: Sequence[DatasetId]) -> list[OutRow]:
    return _found(transaction.rows("chunks_to_rebuild", datasetids=list(datasetids)))


def change(transaction: Transaction, act: Act, rows: Sequence[OutRow]) -> list[tuple[ChunkKey, Status]]:
    """The chunks that still need it and that no other transaction holds, with their new status."""
    columns = {
        "datasetids": [row.datasetid for row in rows],
        "jobids": [row.jobid for row in rows],
        "dataids": [row.dataid for row in rows],
    }
    changed = transaction.rows(act, **columns)
    return [
        (ChunkKey(datasetid=DatasetId(row["datasetid"]), dataid=DataId(row["dataid"])), Status(row["status"]))
        for row in changed
    ]


def ask_again(transaction: Transaction) -> int:
    """Evaluate all refused chunks again; their number."""
    asked: int = transaction.value("heal_blocked")
    return asked


def broken_chunks(transaction: Transaction) -> list[str]:
    """The chunks that cannot be evaluated, each with the error."""
    return [f"{row['jobid']}/{row['dataid']}: {row['problem']}" for row in transaction.rows("broken_chunks")]


def close_runs(transaction: Transaction) -> int:
    """Runs that hold nothing and whose orchestrator never ended them; their number."""
    ended: int = transaction.value("heal_runs")
    return ended


def remove_strays(transaction: Transaction) -> int:
    """IN rows of claims that are gone; their number."""
    return len(transaction.rows("heal_strays"))


def remove_left_over(transaction: Transaction) -> int:
    """IN rows of foreign clients that died, beside chunks that are to run again; their number."""
    removed: int = transaction.value("heal_left_over")
    return removed


def patrol(transaction: Transaction) -> int:
    """Look at the next rows of the ledger for chunks that are missing in the runnable set; how many it found."""
    found: int = transaction.value("patrol", count=PATROL)
    return found


def jobs_with_chunks(transaction: Transaction) -> list[JobId]:
    return [row["jobid"] for row in transaction.rows("jobs_with_chunks")]


def rebuild_turns(transaction: Transaction, jobid: JobId) -> None:
    transaction.rows("rebuild_turns", jobid=jobid)


def rebuild_stale(transaction: Transaction, jobid: JobId, after: str, count: int) -> tuple[str | None, int]:
    """The next made chunks of a Job: where to go on, and how many marks were wrong."""
    rebuilt = transaction.one("rebuild_stale", jobid=jobid, after=after, count=count)
    return rebuilt["last"], rebuilt["corrected"]


def rebuild_after(transaction: Transaction, jobid: JobId, after: str, count: int) -> tuple[str | None, int, int]:
    """The next chunks of a Job: where to go on, and how many were added to the runnable set and removed from it."""
    rebuilt = transaction.one("rebuild_after", jobid=jobid, after=after, count=count)
    return rebuilt["last"], rebuilt["added"], rebuilt["removed"]


def _found(rows: Sequence[Row]) -> list[OutRow]:
    return [OutRow(datasetid=row["datasetid"], jobid=row["jobid"], dataid=row["dataid"]) for row in rows]
