"""runs: the executions of Jobs, how long they take, and whether one takes longer than it should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..ledger.database import Ledger
from ..model.errors import UnknownName
from ..model.ids import JobId, RunId, job_id
from ..protocol.gate import require_job


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    run_id: RunId
    jobid: JobId
    runner: str
    external_id: str | None
    started: datetime
    ended: datetime | None
    #: ENDED or FAILED; None: it runs.
    outcome: str | None
    duration: timedelta
    #: How many chunks it has claimed and not finished.
    holds: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Sla:
    """The newest run of a Job against the average of its newest 25 finished ones."""

    jobid: JobId
    finished: int
    average: timedelta | None
    longest: timedelta | None
    run_id: RunId
    duration: timedelta
    running: bool

    @property
    def breached(self) -> bool:
        return self.average is not None and self.duration > self.average


def runs(
    ledger: Ledger,
    *,
    jobid: str | None = None,
    run_ids: Sequence[int] | None = None,
    running: bool = False,
    failed: bool = False,
    count: int = 50,
) -> list[Run]:
    """The newest first."""
    job = job_id(jobid) if jobid is not None else None
    with ledger.transaction() as transaction:
        if job is not None:
            require_job(transaction, job)
        wanted = list(run_ids) if run_ids is not None else None
        found = transaction.rows("runs", jobid=job, run_ids=wanted, running=running, failed=failed, count=count)
    if wanted and (missing := set(wanted) - {row["run_id"] for row in found}):
        raise UnknownName(f"there is no run {min(missing)}; see the runs with: odf runs")
    return [
        Run(
            run_id=RunId(row["run_id"]),
            jobid=JobId(row["jobid"]),
            runner=row["runner"],
            external_id=row["external_id"],
            started=row["started"],
            ended=row["ended"],
            outcome=row["outcome"],
            duration=(row["ended"] or row["now"]) - row["started"],
            holds=row["holds"],
        )
        for row in found
    ]


def sla(ledger: Ledger) -> list[Sla]:
    """Of every Job that ever ran."""
    with ledger.statement() as statement:
        found = statement.rows("sla")
    return [
        Sla(
            jobid=JobId(row["jobid"]),
            finished=row["runs"],
            average=row["average"],
            longest=row["longest"],
            run_id=RunId(row["run_id"]),
            duration=row["duration"],
            running=row["ended"] is None,
        )
        for row in found
    ]
