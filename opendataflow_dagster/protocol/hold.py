"""hold, unhold, skip: a person takes a chunk out of the flow, and gives it back."""

from __future__ import annotations

from collections.abc import Iterable

from ..ledger.chunks import changed, require
from ..ledger.database import Ledger
from ..model.ids import ChunkKey
from ..model.status import Status


def hold(ledger: Ledger, keys: Iterable[ChunkKey], *, by: str, reason: str = "") -> list[ChunkKey]:
    """Nobody may run them until `unhold`; a running one loses its claim. Returns those that were not on hold."""
    return _set(ledger, keys, Status.HOLD, by, reason)


def skip(ledger: Ledger, keys: Iterable[ChunkKey], *, by: str, reason: str = "") -> list[ChunkKey]:
    """They are deliberately not produced; consumers wait or pass, as the DataSet declares."""
    return _set(ledger, keys, Status.SKIPPED, by, reason)


def unhold(ledger: Ledger, keys: Iterable[ChunkKey], *, by: str, reason: str = "") -> list[ChunkKey]:
    """They get back the status that they had; one that was running is resubmitted."""
    wanted = list(keys)
    with ledger.transaction(actor=by) as transaction:
        require(transaction, wanted)
        return changed(transaction, "unhold", wanted, reason=reason or None)


def _set(ledger: Ledger, keys: Iterable[ChunkKey], status: Status, by: str, reason: str) -> list[ChunkKey]:
    wanted = list(keys)
    with ledger.transaction(actor=by) as transaction:
        done = changed(transaction, "set_status", wanted, status=status, reason=reason or None)
        require(transaction, wanted)
        return done
