"""hold, unhold, skip: an operator takes chunks out of the flow, and puts them back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..ledger import operations
from ..ledger.chunks import require
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.ids import ChunkKey
from ..model.status import Status


def hold(ledger: Ledger, keys: Iterable[ChunkKey], *, by: str, reason: str = "") -> list[ChunkKey]:
    """The chunks cannot run until `unhold`; live claims are revoked. Returns the chunks that were not on HOLD."""
    return _set_status(ledger, keys, Status.HOLD, by, reason)


def skip(ledger: Ledger, keys: Iterable[ChunkKey], *, by: str, reason: str = "") -> list[ChunkKey]:
    """The chunks are deliberately not produced. The DataSet declares whether consumers wait or run without them."""
    return _set_status(ledger, keys, Status.SKIPPED, by, reason)


@gives_way
def unhold(ledger: Ledger, keys: Iterable[ChunkKey], *, by: str, reason: str = "") -> list[ChunkKey]:
    """Restores the status from before the hold; a chunk that was RUNNING becomes RESUBMIT."""
    chunks = list(keys)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        require(transaction, chunks)
        return operations.unhold(transaction, chunks, reason or None)


@gives_way
def _set_status(
    ledger: Ledger, keys: Iterable[ChunkKey], status: Literal[Status.HOLD, Status.SKIPPED], by: str, reason: str
) -> list[ChunkKey]:
    chunks = list(keys)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        changed = operations.set_status(transaction, chunks, status, reason or None)
        # Afterwards: a planned chunk gets its row only now.
        require(transaction, chunks)
        return changed
