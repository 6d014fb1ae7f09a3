"""throttle, pause, resume: limit how many chunks of a Job run at a time. Running chunks are not affected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..ledger import registry, steering
from ..ledger.database import Ledger, Transaction
from ..ledger.registry import Room
from ..ledger.retry import gives_way
from ..model.errors import InvalidInput
from ..model.ids import JobId, job_id
from .gate import require_job


@gives_way
def throttle(ledger: Ledger, jobid: str, concurrency: int | None, *, by: str, reason: str = "") -> bool:
    """None: no limit. Returns whether the limit changed, as the other verbs here do."""
    if concurrency is not None and not 0 <= concurrency <= 1_000_000:
        raise InvalidInput(f"job {jobid}: the concurrency limit cannot be {concurrency}; give 0 to 1,000,000, or none")
    with _registered(ledger, jobid, by) as (transaction, job):
        return steering.throttle(transaction, job, concurrency, reason or None)


@gives_way
def throttle_first(ledger: Ledger, jobid: str, concurrency: int) -> bool:
    """The initial limit, as declared in code. Has no effect once the Job has a limit."""
    with _registered(ledger, jobid) as (transaction, job):
        return steering.declare_concurrency(transaction, job, concurrency)


@gives_way
def pause(ledger: Ledger, jobid: str, *, by: str, reason: str = "") -> bool:
    """No chunk of the Job starts until `resume`."""
    with _registered(ledger, jobid, by) as (transaction, job):
        return steering.pause(transaction, job, reason or None)


@gives_way
def resume(ledger: Ledger, jobid: str, *, by: str, reason: str = "") -> bool:
    with _registered(ledger, jobid, by) as (transaction, job):
        return steering.resume(transaction, job, reason or None)


@gives_way
def room(ledger: Ledger, jobid: str) -> Room:
    """How many more chunks may start now. Advice only: the claim decides."""
    with _registered(ledger, jobid) as (transaction, job):
        return registry.room(transaction, job)


@contextmanager
def _registered(ledger: Ledger, jobid: str, by: str | None = None) -> Iterator[tuple[Transaction, JobId]]:
    job = job_id(jobid)
    with ledger.transaction(actor=by) as transaction:
        require_job(transaction, job)
        yield transaction, job
