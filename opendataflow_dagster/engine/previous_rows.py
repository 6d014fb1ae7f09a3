"""What the check like_previous compares a chunk with.

It is the last published version, whatever its chunk is doing now, of the nearest chunk before it that has one: in a
run that makes several at a time, the chunk just before is often not made yet. Where there is none, or nobody knows the
order of the chunks, it is the last version of the chunk itself.
"""

from __future__ import annotations

from ..ledger.chunks import find
from ..ledger.claims import manifests
from ..ledger.database import Ledger
from ..model.ids import ChunkKey, DataId
from ..model.partitions import previous_key
from .declaration import Declaration

# A chunk that lies further back says little about this one.
_BACK = 30


def previous_rows(ledger: Ledger, declared: Declaration, dataid: DataId) -> int | None:
    """None: there is nothing to compare with, or nobody compares."""
    if not any(check.compares_with_previous for check in declared.checks):
        return None
    nearest = [*_before(declared, dataid), dataid]
    with ledger.statement() as statement:
        rows = find(statement, [ChunkKey(datasetid=declared.datasetid, dataid=one) for one in nearest])
        current = {one.dataid: one.manifest_id for one in rows if one.manifest_id is not None}
        wanted = [current[one] for one in nearest if one in current][:1]
        found = manifests(statement, wanted)
    return found[0].row_count if found else None


def _before(declared: Declaration, dataid: DataId) -> list[DataId]:
    """The nearest first."""
    found: list[DataId] = []
    while len(found) < _BACK and (before := previous_key(declared.partitions, found[-1] if found else dataid)):
        found.append(before)
    return found
