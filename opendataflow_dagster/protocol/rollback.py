"""rollback: publish an earlier version of a chunk again. No bytes move; chunks made from a newer one become stale."""

from __future__ import annotations

from functools import partial

from ..ledger import chunks, lookup
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.errors import ForbiddenTransition, UnknownName
from ..model.ids import ChunkKey
from .publish import refuse_misplaced


@gives_way
def rollback(ledger: Ledger, key: ChunkKey, version: int, *, by: str, reason: str = "") -> int:
    """Returns the number of the new version. A chunk that is RUNNING or on HOLD is refused."""
    with ledger.transaction(actor=by, reason=reason) as transaction:
        chunks.require(transaction, [key])
        old_manifest = chunks.version(transaction, key, version)
        if old_manifest is None:
            raise UnknownName(f"{key} has no version {version}; list its versions with: odf chunk show")
        refuse_misplaced(key, old_manifest, partial(lookup.root_of, transaction, key.datasetid))
        text = f"rolled back to version {version}{': ' if reason else ''}{reason}"
        new_version = chunks.rollback(transaction, old_manifest, text)
        if new_version is None:
            raise ForbiddenTransition(f"{key} is RUNNING or on HOLD; cancel or unhold it, then roll it back")
        return new_version
