"""How operators limit Jobs: concurrency and pauses, and who changed them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..model.ids import JobId
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class JobControl:
    """A Job that an operator limits."""

    jobid: JobId
    concurrency: int | None
    paused: datetime | None
    reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlChange:
    at: datetime
    concurrency: int | None
    paused: bool
    reason: str | None
    by: str


def throttle(transaction: Transaction, jobid: JobId, concurrency: int | None, reason: str | None) -> bool:
    return bool(transaction.run("throttle", jobid=jobid, concurrency=concurrency, reason=reason))


def declare_concurrency(transaction: Transaction, jobid: JobId, concurrency: int) -> bool:
    """Set the limit from the code, unless the Job already has one."""
    return bool(transaction.run("first_throttle", jobid=jobid, concurrency=concurrency))


def pause(transaction: Transaction, jobid: JobId, reason: str | None) -> bool:
    return bool(transaction.run("pause", jobid=jobid, reason=reason))


def resume(transaction: Transaction, jobid: JobId, reason: str | None) -> bool:
    return bool(transaction.run("resume", jobid=jobid, reason=reason))


def controls(transaction: Transaction) -> list[JobControl]:
    return [JobControl(**row) for row in transaction.rows("controls")]


def control_changes(transaction: Transaction, jobid: str, count: int) -> list[ControlChange]:
    """Newest first."""
    return [ControlChange(**row) for row in transaction.rows("control_changes", jobid=jobid, count=count)]
