"""heat_map: the chunks of a DataSet in a row of cells. A cell of several chunks shows the worst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ..ledger import overview
from ..ledger.database import Transaction
from ..ledger.overview import CellCount as CellCount
from ..ledger.staleness import stale_chunks
from ..model.ids import ChunkKey, DataId, DatasetId
from .stale import cause_of

#: What no status says, in lower case. An unknown status is worse than all of these.
WORST_FIRST = ("FAILED", "HOLD", "stale", "RUNNING", "RESUBMIT", "PENDING", "missing", "SKIPPED", "READY")
#: A year of days.
_MOST_CELLS = 366


@dataclass(frozen=True, kw_only=True, slots=True)
class MapCell:
    first: DataId
    last: DataId
    #: Worst first.
    counts: tuple[CellCount, ...]

    @property
    def worst(self) -> CellCount:
        return self.counts[0]

    @property
    def chunks(self) -> int:
        return sum(count.chunks for count in self.counts)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatMap:
    datasetid: DatasetId
    #: In natural order.
    cells: tuple[MapCell, ...]

    @property
    def chunks(self) -> int:
        return sum(cell.chunks for cell in self.cells)


def heat_maps(
    transaction: Transaction, datasetids: Sequence[DatasetId], incomplete: Sequence[DatasetId]
) -> list[HeatMap]:
    """In the order of the names. `incomplete`: the DataSets with missing chunks."""
    counts = _with_causes(
        transaction, overview.heat_cells(transaction, datasetids, incomplete=incomplete, most=_MOST_CELLS)
    )
    maps = {
        datasetid: HeatMap(
            datasetid=datasetid,
            cells=tuple(_cell(of_cell) for _, of_cell in groupby(of_dataset, lambda count: count.cell)),
        )
        for datasetid, of_dataset in groupby(counts, lambda count: count.datasetid)
    }
    return [maps[datasetid] for datasetid in datasetids if datasetid in maps]


def _with_causes(transaction: Transaction, counts: Sequence[CellCount]) -> list[CellCount]:
    """With the causes of the stale chunks as reasons."""
    examples = [count for count in counts if count.status == "stale"]
    found = stale_chunks(
        transaction, [*{count.datasetid for count in examples}], [*{count.example for count in examples}]
    )
    causes = {chunk.key: cause_of(chunk) for chunk in found}
    return [
        replace(count, reason=causes.get(ChunkKey(datasetid=count.datasetid, dataid=count.example)))
        if count.status == "stale"
        else count
        for count in counts
    ]


def badness(status: str) -> int:
    return WORST_FIRST.index(status) if status in WORST_FIRST else -1


def _cell(counts: Iterable[CellCount]) -> MapCell:
    worst_first = sorted(counts, key=lambda count: badness(count.status))
    firsts = [count.first for count in worst_first if count.first is not None]
    lasts = [count.last for count in worst_first if count.last is not None]
    return MapCell(first=firsts[0], last=lasts[0], counts=tuple(worst_first))
