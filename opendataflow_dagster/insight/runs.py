"""runs: the executions of Jobs, and whether the newest one takes longer than usual."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta

from ..ledger import runs
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..ledger.runs import JobRun as JobRun
from ..ledger.runs import LatestRun
from ..model.ids import job_id
from ..protocol.gate import require_job

#: A run is slow when it takes longer than the 95th percentile of the earlier runs, times this.
_MARGIN = 1.5
#: With fewer finished runs a percentile says nothing.
_ENOUGH_RUNS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class NewestRun(LatestRun):
    """The newest run of a Job against those before it."""

    #: None: too few finished runs to judge.
    limit: timedelta | None
    is_slow: bool
    #: The rule and the figures that decided.
    rule: str


@gives_way
def find_runs(
    ledger: Ledger, *, jobid: str | None = None, running: bool = False, failed: bool = False, count: int = 50
) -> list[JobRun]:
    """Newest first."""
    job = job_id(jobid) if jobid is not None else None
    with ledger.transaction() as transaction:
        if job is not None:
            require_job(transaction, job)
        return runs.find(transaction, jobid=job, running=running, failed=failed, count=count)


@gives_way
def find_run(ledger: Ledger, run_id: int) -> JobRun:
    with ledger.statement() as statement:
        return runs.require(statement, run_id)


@gives_way
def newest_runs(ledger: Ledger) -> list[NewestRun]:
    """One for each Job that has ever run."""
    with ledger.statement() as statement:
        return [_newest_run(run) for run in runs.latest(statement)]


def _newest_run(run: LatestRun) -> NewestRun:
    limit = run.p95 * _MARGIN if run.p95 is not None and run.finished >= _ENOUGH_RUNS else None
    if run.p95 is None or limit is None:
        rule = f"no limit: {run.finished} finished runs before it, at least {_ENOUGH_RUNS} are needed"
    else:
        p95 = f"{run.p95.total_seconds():,.1f} s"
        rule = f"{_MARGIN} x the 95th percentile of the last {run.finished} finished runs ({p95})"
    return NewestRun(**asdict(run), limit=limit, is_slow=limit is not None and run.duration > limit, rule=rule)
