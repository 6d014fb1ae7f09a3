"""begin, end, discard and delete runs. A run is one execution of a Job; its claims carry its id."""

from __future__ import annotations

from ..ledger import runs
from ..ledger.chunks import deleted
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.ids import ChunkKey, RunId, data_id, job_id
from .gate import require_job


@gives_way
def begin_run(ledger: Ledger, jobid: str, *, runner: str | None = None, external_id: str | None = None) -> RunId:
    """`external_id` is the orchestrator's id of the run."""
    job = job_id(jobid)
    with ledger.statement() as statement:
        require_job(statement, job)
        return runs.begin(statement, job, runner=runner or ledger.actor, external_id=external_id)


def record_heartbeat(ledger: Ledger, run_id: RunId) -> None:
    """The process of this run is alive."""
    with ledger.statement() as statement:
        runs.record_heartbeat(statement, run_id)


@gives_way
def end_run(ledger: Ledger, run_id: RunId, *, failed: bool = False) -> None:
    with ledger.statement() as statement:
        runs.end(statement, run_id, failed=failed)


@gives_way
def discard_run(ledger: Ledger, run_id: RunId) -> None:
    """Delete a run that claimed nothing. Schedulers poll every minute, and empty runs would fill the list."""
    with ledger.statement() as statement:
        runs.delete(statement, run_id)


@gives_way
def delete_run(ledger: Ledger, jobid: str, dataid: str, *, by: str, reason: str = "") -> list[ChunkKey]:
    """Delete the rows of a Job for one dataid, as if it had never run. A live claim is revoked; versions stay."""
    job, chunk = job_id(jobid), data_id(dataid)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        require_job(transaction, job)
        return deleted(transaction, job, chunk)
