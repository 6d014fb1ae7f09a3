"""Status changes that operators make. Each function returns the chunks it changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from ..model.ids import ChunkKey
from ..model.status import Status
from . import rows
from .database import Transaction


def set_status(
    transaction: Transaction,
    keys: Sequence[ChunkKey],
    status: Literal[Status.HOLD, Status.SKIPPED],
    reason: str | None,
) -> list[ChunkKey]:
    """A chunk without a row gets one if a Job produces its DataSet."""
    return _changed(transaction, "set_status", keys, status=status, reason=reason)


def unhold(transaction: Transaction, keys: Sequence[ChunkKey], reason: str | None) -> list[ChunkKey]:
    return _changed(transaction, "unhold", keys, reason=reason)


def resubmit(
    transaction: Transaction, keys: Sequence[ChunkKey], reason: str | None, requested: datetime | None
) -> list[ChunkKey]:
    """Leaves chunks on HOLD, and chunks that became READY after `requested`."""
    return _changed(transaction, "resubmit", keys, reason=reason, requested=requested)


def cancel(transaction: Transaction, keys: Sequence[ChunkKey], reason: str) -> list[ChunkKey]:
    """Also fails the other outputs of each claim."""
    return _changed(transaction, "cancel_chunks", keys, reason=reason)


def cancel_run(transaction: Transaction, run_id: int, reason: str) -> list[ChunkKey]:
    """Fails what the run holds, and what was requested of it and has not begun."""
    return _changed(transaction, "cancel_run", (), run_id=run_id, reason=reason)


def _changed(
    transaction: Transaction, statement: str, keys: Sequence[ChunkKey], **parameters: object
) -> list[ChunkKey]:
    changed = transaction.rows(statement, **rows.chunks(keys), **parameters)
    return sorted({rows.key(row) for row in changed})
