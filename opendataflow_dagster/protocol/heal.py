"""heal: recover from crashes and expired leases. Any client may call it at any time, also concurrently."""

from __future__ import annotations

from dataclasses import dataclass

from ..ledger import healing
from ..ledger.claims import open_days
from ..ledger.database import Ledger
from ..model.ids import ChunkKey
from ..model.status import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Healed:
    #: Their lease expired: they run again, or their retry budget is exhausted.
    resubmitted: tuple[ChunkKey, ...] = ()
    gave_up: tuple[ChunkKey, ...] = ()
    #: Failures that the Job's policy retries.
    retried: tuple[ChunkKey, ...] = ()
    #: READY chunks with a newer input version, of Jobs that cascade.
    cascaded: tuple[ChunkKey, ...] = ()
    #: Blocked chunks that were evaluated again.
    asked_again: int = 0
    #: IN rows of claims that are gone.
    strays: int = 0
    #: Chunks that the rebuild added to the runnable set and removed from it. More than zero is a bug: report it.
    added: int = 0
    removed: int = 0
    closed_runs: int = 0

    def __str__(self) -> str:
        return (
            f"expired leases: {len(self.resubmitted)} resubmitted, {len(self.gave_up)} failed; "
            f"retried: {len(self.retried)}; cascaded: {len(self.cascaded)}; re-evaluated: {self.asked_again}; "
            f"stray rows removed: {self.strays}; runnable set: {self.added} added, {self.removed} removed; "
            f"runs closed: {self.closed_runs}"
        )


def heal(ledger: Ledger, *, rebuild: bool = False, asked_by: str = "") -> Healed:
    """Each part is a transaction of its own. `rebuild` also restores the derived rows; claims wait for it.

    Its changes have reasons of their own; `asked_by` is the person who asked for it, and why.
    """
    person = f", asked by {asked_by}" if asked_by else ""
    with ledger.transaction(actor=f"heal{person}") as transaction:
        expired = healing.release_expired(transaction)
    with ledger.transaction(actor=f"heal: retry policy{person}") as transaction:
        retried = healing.retry_failed(transaction)
    with ledger.transaction(actor=f"heal: cascade policy{person}") as transaction:
        cascaded = healing.resubmit_stale(transaction)
    with ledger.transaction(actor=f"heal{person}") as transaction:
        open_days(transaction)
        asked_again = healing.ask_again(transaction)
        closed_runs = healing.close_runs(transaction)
    strays = added = removed = 0
    if rebuild:
        with ledger.transaction(actor=f"heal{person}") as transaction:
            strays = healing.remove_strays(transaction)
            added, removed = healing.rebuild_runnable(transaction)
    return Healed(
        resubmitted=tuple(sorted(key for key, status in expired if status == Status.RESUBMIT)),
        gave_up=tuple(sorted(key for key, status in expired if status == Status.FAILED)),
        retried=tuple(retried),
        cascaded=tuple(cascaded),
        asked_again=asked_again,
        strays=strays,
        added=added,
        removed=removed,
        closed_runs=closed_runs,
    )
