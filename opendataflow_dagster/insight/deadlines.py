"""deadlines: what is late. Chunks by their `expected_by`, DataSets by their `fresh_within`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ..ledger import deadlines as ledger_deadlines
from ..ledger.database import Ledger
from ..ledger.deadlines import Freshness as Freshness
from ..ledger.deadlines import LateChunk as LateChunk
from ..ledger.overview import DatasetCounts, allow_table_scans
from ..ledger.retry import gives_way
from ..model.ids import DatasetId


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadlines:
    #: Of each DataSet the newest first.
    late: tuple[LateChunk, ...] = ()
    #: Every DataSet that declares `fresh_within`, fresh or not.
    freshness: tuple[Freshness, ...] = ()

    @property
    def not_fresh(self) -> tuple[Freshness, ...]:
        return tuple(freshness for freshness in self.freshness if not freshness.is_fresh)

    def late_of(self, datasetid: DatasetId) -> list[LateChunk]:
        return [chunk for chunk in self.late if chunk.datasetid == datasetid]

    def of(self, datasetids: set[str]) -> Deadlines:
        return Deadlines(
            late=tuple(chunk for chunk in self.late if chunk.datasetid in datasetids),
            freshness=tuple(freshness for freshness in self.freshness if freshness.datasetid in datasetids),
        )

    def missed(self, since: datetime, until: datetime | None) -> Deadlines:
        """What became late in this time, and still is."""
        end = until or datetime.max.replace(tzinfo=UTC)
        return Deadlines(
            late=tuple(chunk for chunk in self.late if since < chunk.due <= end),
            freshness=tuple(
                freshness for freshness in self.not_fresh if freshness.due is not None and since < freshness.due <= end
            ),
        )


@gives_way
def find_deadlines(ledger: Ledger) -> Deadlines:
    with ledger.transaction() as transaction:
        allow_table_scans(transaction)
        late, freshness = ledger_deadlines.late_chunks(transaction), ledger_deadlines.freshness(transaction)
    return Deadlines(late=tuple(late), freshness=tuple(freshness))


def freshness_in(counted: Iterable[DatasetCounts]) -> tuple[Freshness, ...]:
    """From figures that are there already."""
    return tuple(
        Freshness(
            datasetid=counts.datasetid, fresh_within=counts.fresh_within, newest=counts.newest_ready, age=counts.age
        )
        for counts in counted
        if counts.fresh_within is not None
    )
