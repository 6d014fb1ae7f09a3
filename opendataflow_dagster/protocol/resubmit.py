"""resubmit: the one act of recovery. The same as typing the status in SQL, with a name and a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ..ledger import operations
from ..ledger.chunks import downstream, find, require
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.ids import ChunkKey
from ..model.status import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Resubmitted:
    #: These run again, producers before consumers, when their inputs are READY.
    chunks: tuple[ChunkKey, ...]
    #: On HOLD: unhold them first.
    held: tuple[ChunkKey, ...]
    #: Already RESUBMIT, or READY since the request was made.
    satisfied: tuple[ChunkKey, ...]


@gives_way
def resubmit(
    ledger: Ledger,
    keys: Iterable[ChunkKey],
    *,
    by: str,
    reason: str = "",
    with_downstream: bool = False,
    requested: datetime | None = None,
) -> Resubmitted:
    """All in one transaction. `requested`: leave chunks that became READY after this time."""
    wanted = list(dict.fromkeys(keys))
    with ledger.transaction(actor=by) as transaction:
        require(transaction, wanted)
        if with_downstream:
            wanted = downstream(transaction, wanted)
        resubmitted = operations.resubmit(transaction, wanted, reason or None, requested)
        chunks = find(transaction, wanted)
    held = {ChunkKey(datasetid=chunk.datasetid, dataid=chunk.dataid) for chunk in chunks if chunk.status == Status.HOLD}
    return Resubmitted(
        chunks=tuple(resubmitted),
        held=tuple(sorted(held)),
        satisfied=tuple(sorted(set(wanted) - set(resubmitted) - held)),
    )
