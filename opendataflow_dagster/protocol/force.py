"""force: claim a chunk whatever the five answers are; for development. History and verdict say that it was forced."""

from __future__ import annotations

from ..ledger import chunks, claims
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.ids import RunId, data_id, job_id
from .gate import manifests_of, pins, require_job


def force(ledger: Ledger, jobid: str, dataid: str, run_id: RunId | None = None, *, by: str) -> Claim:
    """A live claim of the chunk is revoked. The inputs are not locked; what there is of them is pinned."""
    job, chunk = job_id(jobid), data_id(dataid)
    with ledger.transaction(actor=by) as transaction:
        require_job(transaction, job)
        (verdict,) = claims.ask(transaction, job, [chunk])
        manifests = manifests_of(transaction, [verdict])
        return chunks.force(transaction, verdict, run_id, pins(verdict, manifests), reason=f"forced by {by}")
