"""run: one execution of a Job, over one chunk or many. Claims name it, and a dead run's claims are released by it."""

from __future__ import annotations

from ..ledger.chunks import deleted
from ..ledger.database import Ledger
from ..model.ids import ChunkKey, RunId, data_id, job_id
from .gate import require_job


def begin_run(ledger: Ledger, jobid: str, *, runner: str | None = None, external_id: str | None = None) -> RunId:
    """`external_id` is what the orchestrator calls the run."""
    job = job_id(jobid)
    with ledger.statement() as statement:
        require_job(statement, job)
        begun = statement.one("begin_run", jobid=job, runner=runner or ledger.actor, external_id=external_id)
    return RunId(begun["run_id"])


def be_heard(ledger: Ledger, run_id: RunId) -> None:
    """The process of this run lives."""
    with ledger.statement() as statement:
        statement.run("be_heard", run_id=run_id)


def end_run(ledger: Ledger, run_id: RunId, *, failed: bool = False) -> None:
    with ledger.statement() as statement:
        statement.run("end_run", run_id=run_id, outcome="FAILED" if failed else "ENDED")


def forget_run(ledger: Ledger, run_id: RunId) -> None:
    """A run that took nothing never was: a scheduler asks every minute."""
    with ledger.statement() as statement:
        statement.run("forget_run", run_id=run_id)


def delete_run(ledger: Ledger, jobid: str, dataid: str, *, by: str, reason: str = "") -> list[ChunkKey]:
    """As if the Job had never run for this dataid: its own rows go. A live claim is lost; versions stay."""
    job, chunk = job_id(jobid), data_id(dataid)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        require_job(transaction, job)
        return deleted(transaction, job, chunk)
