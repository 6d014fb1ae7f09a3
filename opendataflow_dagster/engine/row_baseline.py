"""The row count that the check like_previous compares a chunk with.

It belongs to the nearest earlier chunk that has a published version, whatever its status is now: a run makes several
chunks at a time, so the chunk just before is often not there yet. Without such a chunk, or when the order of chunks is
unknown, it is the last version of the chunk itself.
"""

from __future__ import annotations

from ..ledger.chunks import find
from ..ledger.claims import manifests
from ..ledger.database import Ledger
from ..model.ids import ChunkKey, DataId
from ..model.partitions import previous_key
from .declaration import Declaration

# A chunk further back says little about this one.
_FURTHEST = 30


def row_baseline(ledger: Ledger, declaration: Declaration, dataid: DataId) -> int | None:
    """None: there is no earlier version, or no check needs it."""
    if not any(check.compares_with_previous for check in declaration.checks):
        return None
    candidates: list[DataId] = []
    while len(candidates) < _FURTHEST and (
        before := previous_key(declaration.partitions, candidates[-1] if candidates else dataid)
    ):
        candidates.append(before)
    candidates.append(dataid)
    with ledger.statement() as statement:
        chunks = find(statement, [ChunkKey(datasetid=declaration.datasetid, dataid=dataid) for dataid in candidates])
        current = {chunk.dataid: chunk.manifest_id for chunk in chunks if chunk.manifest_id is not None}
        nearest = [current[dataid] for dataid in candidates if dataid in current][:1]
        baseline = manifests(statement, nearest)
    return baseline[0].row_count if baseline else None
