"""cancel: a person ends what runs. It is FAILED and can be resubmitted; who still works on it publishes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from ..insight.runs import runs
from ..ledger.chunks import changed, require
from ..ledger.database import Ledger
from ..model.ids import ChunkKey, RunId


def cancel(ledger: Ledger, keys: Iterable[ChunkKey], *, by: str, reason: str = "") -> list[ChunkKey]:
    """Returns those that ran."""
    wanted = list(keys)
    with ledger.transaction(actor=by) as transaction:
        require(transaction, wanted)
        return changed(transaction, "cancel_chunks", wanted, reason=_words(by, reason))


def cancel_run(ledger: Ledger, run_id: int, *, by: str, reason: str = "") -> list[ChunkKey]:
    """All that the run holds, and what was asked of it and has not begun; the run has failed."""
    runs(ledger, run_ids=[run_id])
    with ledger.transaction(actor=by) as transaction:
        done = changed(transaction, "cancel_run", (), run_id=run_id, reason=_words(by, reason))
        transaction.run("end_run", run_id=RunId(run_id), outcome="FAILED")
    return done


def _words(by: str, reason: str) -> str:
    return f"cancelled by {by}: {reason}" if reason else f"cancelled by {by}"
