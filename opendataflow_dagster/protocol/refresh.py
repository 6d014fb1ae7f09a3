"""refresh: bring stale chunks up to date. They are resubmitted in the normal way, so each waits for its producers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ledger import lookup, operations, staleness
from ..ledger.chunks import find
from ..ledger.database import Ledger
from ..ledger.names import unknown_dataset
from ..ledger.retry import gives_way
from ..model.ids import ChunkKey, dataset_id
from ..model.status import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Refreshed:
    #: These run again, producers first: those of the DataSets, and stale chunks further up that they are made from.
    chunks: tuple[ChunkKey, ...]
    #: Stale, but made from a stale chunk that is FAILED, SKIPPED or on HOLD: they would wait for it.
    left: tuple[ChunkKey, ...]


@gives_way
def refresh(ledger: Ledger, datasetids: Sequence[str] | None = None, *, by: str, reason: str = "") -> Refreshed:
    """Of these DataSets, or of all. One transaction: no consumer can run between its producer and itself."""
    wanted = [dataset_id(name) for name in datasetids] if datasetids else None
    with ledger.transaction(actor=by) as transaction:
        for datasetid in wanted or ():
            if not lookup.is_dataset(transaction, datasetid):
                raise unknown_dataset(transaction, datasetid)
        found = staleness.chunks_to_refresh(transaction, wanted)
        stale = [chunk for chunk, is_free in found if is_free]
        changed = set(operations.resubmit(transaction, stale, reason or "stale: an input has a newer version", None))
        # A chunk that became RUNNING or was held in the meantime is left alone.
        held = {
            ChunkKey(datasetid=chunk.datasetid, dataid=chunk.dataid)
            for chunk in find(transaction, stale)
            if chunk.status == Status.HOLD
        }
    return Refreshed(
        chunks=tuple(chunk for chunk in stale if chunk in changed),
        left=tuple(chunk for chunk, is_free in found if not is_free or chunk in held),
    )
