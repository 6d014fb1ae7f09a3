"""stale: which chunks were made from something that has another version now, why, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ledger import staleness
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..ledger.staleness import StaleChunk as StaleChunk
from ..ledger.staleness import StaleCount as StaleCount
from ..model.ids import dataset_id
from ..protocol.heal import REBUILT_UNASKED
from .selection import require_dataset


@dataclass(frozen=True, kw_only=True, slots=True)
class StaleReport:
    datasets: tuple[StaleCount, ...]
    #: Direct causes first; at most as many as requested.
    chunks: tuple[StaleChunk, ...]

    @property
    def total(self) -> int:
        return sum(count.stale for count in self.datasets)


@gives_way
def stale(ledger: Ledger, datasetids: Sequence[str] = (), *, count: int) -> StaleReport:
    """Of these DataSets; none: of all."""
    wanted = [dataset_id(name) for name in datasetids] or None
    with ledger.transaction() as transaction:
        for datasetid in wanted or ():
            require_dataset(transaction, datasetid)
        return StaleReport(
            datasets=tuple(staleness.stale_counts(transaction, wanted)),
            chunks=tuple(staleness.stale_chunks(transaction, wanted, count=count)),
        )


def cause_of(chunk: StaleChunk) -> str:
    """In words, without the name of the chunk."""
    if chunk.is_direct:
        return f"made from {_version(chunk.used)} of {chunk.cause}, which is now at {_version(chunk.current)}"
    return f"made from {chunk.cause}, which is stale because of {chunk.root}"


def is_left_to_a_person(count: StaleCount) -> bool:
    """It is rebuilt by itself, but not as many at once."""
    return count.is_rebuilt and count.stale > REBUILT_UNASKED


def _version(number: int | None) -> str:
    return "a version without a manifest" if number is None else f"version {number}"
