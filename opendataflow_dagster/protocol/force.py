"""force: claim a chunk in spite of the five answers; for development. History and verdict say that it was forced."""

from __future__ import annotations

from ..ledger import claims
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.claim import Claim
from ..model.errors import LedgerConflict
from ..model.ids import DataId, JobId, RunId, data_id, job_id
from .gate import require_job


def force(ledger: Ledger, jobid: str, dataid: str, run_id: RunId | None = None, *, by: str) -> Claim:
    """A live claim of the chunk is revoked. The inputs are not locked; the versions that exist are pinned."""
    job, chunk = job_id(jobid), data_id(dataid)
    claim = force_claim(ledger, job, chunk, run_id, by)
    if claim is None:
        raise LedgerConflict(
            f"{job}/{chunk}: no output can be claimed, because the job has none, or rows with locktype IN are in "
            f"their places; delete those rows, then force it again"
        )
    return claim


@gives_way
def force_claim(ledger: Ledger, jobid: JobId, dataid: DataId, run_id: RunId | None, by: str) -> Claim | None:
    with ledger.transaction(actor=by) as transaction:
        require_job(transaction, jobid)
        return claims.force(transaction, jobid, dataid, run_id, reason=f"forced by {by}")
