"""What the ledger knows about the runs of Jobs and the chunks that they claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model.ids import DataId, DatasetId, JobId, RunId
from .database import Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleCounts:
    """Why no chunk of a Job is ready: how many chunks there are of each kind, with an example."""

    #: FAILED with no retries left.
    gave_up: int
    gave_up_dataid: DataId | None
    refused: int
    refused_dataid: DataId | None
    failed: int


def idle_counts(transaction: Transaction, jobid: JobId) -> IdleCounts:
    return IdleCounts(**transaction.one("why_nothing_runs", jobid=jobid))


def held_rows(transaction: Transaction, run_id: RunId) -> Sequence[Row]:
    """One row for each output of each claim that the run still holds."""
    return transaction.rows("run_claims", run_id=run_id)


def claimed_rows(transaction: Transaction, run_id: RunId) -> Sequence[Row]:
    """One row for each output of each claim that the run ever had."""
    return transaction.rows("run_begun", run_id=run_id)


def outputs_of(transaction: Transaction, jobid: JobId) -> list[DatasetId]:
    return [DatasetId(row["datasetid"]) for row in transaction.rows("outputs_of", jobid=jobid)]


def make_dagster_schema(transaction: Transaction) -> None:
    """Dagster creates its tables, but not the Postgres schema that they are in."""
    transaction.run("make_dagster_schema")
