"""resubmit: the one act of recovery. The same as typing the status in SQL, with a name and a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ..ledger import operations
from ..ledger.chunks import downstream, find, require
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.ids import ChunkKey, summary
from ..model.status import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Resubmitted:
    #: These run again, producers before consumers, when their inputs are READY.
    chunks: tuple[ChunkKey, ...]
    #: On HOLD: unhold them first.
    held: tuple[ChunkKey, ...]
    #: Already RESUBMIT, or READY since the request was made.
    satisfied: tuple[ChunkKey, ...]

    def __str__(self) -> str:
        parts = [f"Resubmitted {summary(self.chunks)}." if self.chunks else "Nothing to resubmit."]
        if self.held:
            parts.append(f"Left on hold: {summary(self.held)}; unhold first.")
        if self.satisfied:
            parts.append(f"Already RESUBMIT or READY since: {summary(self.satisfied)}.")
        return " ".join(parts)


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
    with ledger.transaction(actor=by, reason=reason) as transaction:
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
