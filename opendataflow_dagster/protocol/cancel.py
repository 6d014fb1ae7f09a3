"""cancel: an operator stops running chunks. They become FAILED, and their claims can publish nothing any more."""

from __future__ import annotations

from collections.abc import Iterable

from ..ledger import operations, runs
from ..ledger.chunks import require
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.ids import ChunkKey, RunId


@gives_way
def cancel(ledger: Ledger, keys: Iterable[ChunkKey], *, by: str, reason: str = "") -> list[ChunkKey]:
    """Returns the chunks that were running."""
    chunks = list(keys)
    with ledger.transaction(actor=by) as transaction:
        require(transaction, chunks)
        return operations.cancel(transaction, chunks, _reason(by, reason))


@gives_way
def cancel_run(ledger: Ledger, run_id: int, *, by: str, reason: str = "") -> list[ChunkKey]:
    """Fails what the run holds, what was requested of it and has not begun, and the run itself."""
    with ledger.transaction(actor=by) as transaction:
        runs.require(transaction, run_id)
        cancelled = operations.cancel_run(transaction, run_id, _reason(by, reason))
        runs.end(transaction, RunId(run_id), failed=True)
    return cancelled


def _reason(by: str, reason: str) -> str:
    return f"cancelled by {by}: {reason}" if reason else f"cancelled by {by}"
