"""resubmit: the one act of recovery. The same as typing the status in SQL, with a name and a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ..ledger.chunks import changed, downstream, find, require
from ..ledger.database import Ledger
from ..model.ids import ChunkKey
from ..model.status import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Resubmitted:
    #: These run again, producers before consumers, when their inputs are READY.
    chunks: tuple[ChunkKey, ...]
    #: On hold: unhold them first.
    held: tuple[ChunkKey, ...]
    #: RESUBMIT already, or READY since after the request was made.
    satisfied: tuple[ChunkKey, ...]


def resubmit(
    ledger: Ledger,
    keys: Iterable[ChunkKey],
    *,
    by: str,
    reason: str = "",
    with_downstream: bool = False,
    requested: datetime | None = None,
) -> Resubmitted:
    """All in one transaction. `requested`: a chunk that became READY after that has what was asked for."""
    wanted = list(dict.fromkeys(keys))
    with ledger.transaction(actor=by) as transaction:
        require(transaction, wanted)
        if with_downstream:
            wanted = downstream(transaction, wanted)
        done = changed(transaction, "resubmit", wanted, reason=reason or None, requested=requested)
        left = find(transaction, wanted)
    held = {ChunkKey(datasetid=one.datasetid, dataid=one.dataid) for one in left if one.status == Status.HOLD}
    return Resubmitted(
        chunks=tuple(done),
        held=tuple(sorted(held)),
        satisfied=tuple(sorted(set(wanted) - set(done) - held)),
    )
