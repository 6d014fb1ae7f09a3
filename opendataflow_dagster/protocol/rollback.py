"""rollback: an earlier version of a chunk becomes the newest. No bytes move; its consumers are out of date."""

from __future__ import annotations

from ..ledger import chunks
from ..ledger.database import Ledger
from ..model.errors import ForbiddenTransition, UnknownName
from ..model.ids import ChunkKey
from .publish import refuse_misplaced


def rollback(ledger: Ledger, key: ChunkKey, version: int, *, by: str, reason: str = "") -> int:
    """The number of the new version. A chunk that is running or on hold is refused."""
    with ledger.transaction(actor=by) as transaction:
        chunks.require(transaction, [key])
        old = chunks.version(transaction, key, version)
        if old is None:
            raise UnknownName(f"{key} has no version {version}; see which it has with: odf chunk show")
        refuse_misplaced(key, old)
        said = f"rolled back to version {version}{': ' if reason else ''}{reason}"
        made = chunks.rollback(transaction, old, said)
        if made is None:
            raise ForbiddenTransition(f"{key} is running or on hold; cancel or unhold it, then roll it back")
        return made
