"""Runs: the executions of Jobs, how long they take, and the claims each one holds or held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..model.claim import Claim
from ..model.errors import UnknownName
from ..model.ids import ClaimId, DataId, DatasetId, JobId, RunId
from . import rows
from .database import Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRun:
    run_id: RunId
    jobid: JobId
    runner: str
    external_id: str | None
    started: datetime
    ended: datetime | None
    #: ENDED or FAILED; None while the run is open.
    outcome: str | None
    duration: timedelta
    #: How many chunks it has claimed and not finished.
    holds: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LatestRun:
    """The newest run of a Job, beside the newest 25 runs before it that ended well."""

    jobid: JobId
    run_id: RunId
    duration: timedelta
    running: bool
    #: How many such earlier runs there are.
    finished: int
    p95: timedelta | None
    longest: timedelta | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimWithRoots:
    claim: Claim
    #: The root of each output; None: the DataSet has none.
    roots: Mapping[DatasetId, str | None]


def begin(transaction: Transaction, jobid: JobId, *, runner: str, external_id: str | None) -> RunId:
    return RunId(transaction.value("begin_run", jobid=jobid, runner=runner, external_id=external_id))


def record_heartbeat(transaction: Transaction, run_id: RunId) -> None:
    transaction.rows("be_heard", run_id=run_id)


def end(transaction: Transaction, run_id: RunId, *, failed: bool) -> None:
    transaction.rows("end_run", run_id=run_id, outcome="FAILED" if failed else "ENDED")


def delete(transaction: Transaction, run_id: RunId) -> None:
    transaction.rows("delete_empty_run", run_id=run_id)


def find(
    transaction: Transaction,
    *,
    jobid: JobId | None = None,
    run_ids: Sequence[int] | None = None,
    running: bool = False,
    failed: bool = False,
    count: int,
) -> list[JobRun]:
    """Newest first."""
    ids = list(run_ids) if run_ids is not None else None
    runs = transaction.rows("runs", jobid=jobid, run_ids=ids, running=running, failed=failed, count=count)
    return [JobRun(**row) for row in runs]


def require(transaction: Transaction, run_id: int) -> JobRun:
    runs = find(transaction, run_ids=[run_id], count=1)
    if not runs:
        raise UnknownName(f"run {run_id} does not exist; list the runs with: odf runs")
    return runs[0]


def latest(transaction: Transaction) -> list[LatestRun]:
    """One for each registered Job that has ever run."""
    return [LatestRun(**row) for row in transaction.rows("latest_runs")]


def held_claims(transaction: Transaction, run: JobRun) -> list[ClaimWithRoots]:
    return [
        ClaimWithRoots(
            claim=_claim(run, outputs), roots={DatasetId(output["output"]): output["location"] for output in outputs}
        )
        for outputs in _by_claim(transaction.rows("run_claims", run_id=run.run_id)).values()
    ]


def claims_begun(transaction: Transaction, run: JobRun) -> list[Claim]:
    """Every claim the run has ever made, held or not. Their leases and inputs are not known any more."""
    return [_claim(run, outputs) for outputs in _by_claim(transaction.rows("run_begun", run_id=run.run_id)).values()]


def _by_claim(outputs: Sequence[Row]) -> dict[int, list[Row]]:
    by_claim: dict[int, list[Row]] = {}
    for row in outputs:
        by_claim.setdefault(row["claim_id"], []).append(row)
    return by_claim


def _claim(run: JobRun, outputs: Sequence[Row]) -> Claim:
    """From a row for each output; they differ in nothing else."""
    row = outputs[0]
    return Claim(
        claim_id=ClaimId(row["claim_id"]),
        jobid=run.jobid,
        dataid=DataId(row["dataid"]),
        outputs=tuple(sorted(DatasetId(output["output"]) for output in outputs)),
        attempt=row["attempt"],
        lease=row["lease"],
        lease_until=row["lease_until"],
        run_id=run.run_id,
        inputs=rows.input_versions(row["inputs"]),
    )
