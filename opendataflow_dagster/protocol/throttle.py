"""throttle, pause, resume: how many chunks of a Job run at a time, changed while it runs."""

from __future__ import annotations

from ..ledger import registry
from ..ledger.database import Ledger
from ..ledger.registry import Room
from ..model.errors import InvalidInput
from ..model.ids import job_id
from .gate import require_job


def throttle(ledger: Ledger, jobid: str, concurrency: int | None, *, by: str, reason: str = "") -> bool:
    """At most so many at a time from now on; None: any number. What runs goes on. Did it change anything?"""
    if concurrency is not None and not 0 <= concurrency <= 1_000_000:
        raise InvalidInput(f"{jobid} cannot run {concurrency} chunks at a time; give 0 to 1,000,000, or no limit")
    return _steer(ledger, "throttle", jobid, by, reason, concurrency=concurrency)


def throttle_first(ledger: Ledger, jobid: str, concurrency: int) -> bool:
    """Where a Job begins, as its code declares; what an operator has said stays. Did it change anything?"""
    job = job_id(jobid)
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        return bool(transaction.run("first_throttle", jobid=job, concurrency=concurrency))


def pause(ledger: Ledger, jobid: str, *, by: str, reason: str = "") -> bool:
    """No chunk of it begins until it is resumed; what runs goes on."""
    return _steer(ledger, "pause", jobid, by, reason)


def resume(ledger: Ledger, jobid: str, *, by: str, reason: str = "") -> bool:
    return _steer(ledger, "resume", jobid, by, reason)


def room(ledger: Ledger, jobid: str) -> Room:
    """As advice: the claim decides."""
    job = job_id(jobid)
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        return registry.room(transaction, job)


def _steer(ledger: Ledger, verb: str, jobid: str, by: str, reason: str, **parameters: object) -> bool:
    job = job_id(jobid)
    with ledger.transaction(actor=by) as transaction:
        require_job(transaction, job)
        return bool(transaction.run(verb, jobid=job, reason=reason or None, **parameters))
