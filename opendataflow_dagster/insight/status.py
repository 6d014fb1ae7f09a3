"""status: all DataSets at a glance. Progress, what is missing and why, what runs, and when it will be finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta

from ..ledger import overview, staleness, steering, waiting
from ..ledger.database import Ledger, Transaction
from ..ledger.deadlines import late_chunks
from ..ledger.overview import DatasetCounts, RunnableCounts
from ..ledger.overview import RunningChunk as RunningChunk
from ..ledger.retry import gives_way
from ..ledger.staleness import StaleCount
from ..ledger.steering import JobControl as JobControl
from ..model.ids import ChunkKey, DataId, DatasetId, JobId
from ..model.status import Status
from .deadlines import Deadlines, freshness_in
from .obstacle import ChunkObstacle, first_obstacle, no_producer
from .stale import is_left_to_a_person

_UNFINISHED = (Status.PENDING, Status.RESUBMIT, Status.RUNNING)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetStatus(DatasetCounts):
    #: Chunks of its producing Job that can run now, and chunks that are refused.
    runnable: int
    blocked: int
    #: READY chunks that are stale, and whether they are more than heal makes again by itself, where it should.
    stale: int
    stale_is_left: bool
    #: Versions per minute; None if nothing was published recently.
    pace: float | None
    #: Time until nothing waits, runs or is missing, at this pace.
    eta: timedelta | None
    #: What the newest missing chunk needs first, or the first that waits. None: none is missing, and those can run.
    obstacle: ChunkObstacle | None

    @property
    def chunks(self) -> int:
        return sum(self.counts.values())

    @property
    def expected(self) -> int:
        """All chunks that exist or are missing, without SKIPPED ones."""
        return self.chunks + self.missing - self.counts.get(Status.SKIPPED, 0)

    @property
    def progress(self) -> float | None:
        """The fraction of the expected chunks that is READY."""
        return self.counts.get(Status.READY, 0) / self.expected if self.expected else None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusOverview:
    datasets: tuple[DatasetStatus, ...]
    controls: tuple[JobControl, ...] = ()
    #: Live claims, oldest first; at most as many as requested.
    running: tuple[RunningChunk, ...] = ()
    deadlines: Deadlines = field(default_factory=Deadlines)


@gives_way
def status(ledger: Ledger, *, running: int = 20) -> StatusOverview:
    """One transaction, so that the figures are consistent."""
    with ledger.transaction() as transaction:
        overview.allow_table_scans(transaction)
        runnable = overview.runnable_counts(transaction)
        paces = overview.paces(transaction)
        counted = _counted(transaction)
        obstacles = _obstacles(transaction, counted)
        stale = {count.datasetid: count for count in staleness.stale_counts(transaction)}
        return StatusOverview(
            datasets=tuple(
                _dataset(counts, runnable, paces.get(counts.datasetid), obstacles.get(counts.datasetid), stale)
                for counts, _ in counted
            ),
            controls=tuple(steering.controls(transaction)),
            running=tuple(overview.running_chunks(transaction, running)),
            deadlines=Deadlines(
                late=tuple(late_chunks(transaction)), freshness=freshness_in(counts for counts, _ in counted)
            ),
        )


def _counted(transaction: Transaction) -> list[tuple[DatasetCounts, DataId | None]]:
    """Each DataSet, and a missing chunk that a consumer needs of a DataSet without declared partitions."""
    needed = {chunks.datasetid: chunks for chunks in overview.needed_chunks(transaction)}
    counted: list[tuple[DatasetCounts, DataId | None]] = []
    for counts in overview.dataset_counts(transaction):
        chunks = needed.pop(counts.datasetid, None)
        counted.append((replace(counts, missing=chunks.missing), chunks.dataid) if chunks else (counts, None))
    # A misspelt name in a Job: a DataSet that is nowhere but there.
    counted += [
        (DatasetCounts(datasetid=chunks.datasetid, missing=chunks.missing), chunks.dataid) for chunks in needed.values()
    ]
    return sorted(counted, key=lambda entry: entry[0].datasetid)


def _obstacles(
    transaction: Transaction, counted: Sequence[tuple[DatasetCounts, DataId | None]]
) -> dict[DatasetId, ChunkObstacle]:
    declared = [counts.datasetid for counts, needed in counted if counts.missing and needed is None]
    waits = {
        counts.datasetid: counts.first_waiting
        for counts, _ in counted
        if counts.first_waiting is not None and not counts.missing
    }
    found = (*overview.newest_missing(transaction, declared, 1), *overview.first_unready(transaction, waits))
    example = {key.datasetid: key.dataid for key in found}
    examples = [
        (counts, dataid)
        for counts, needed in counted
        if (dataid := needed or example.get(counts.datasetid)) is not None
    ]
    asked = waiting.ask_each(
        transaction, [(counts.jobid, dataid) for counts, dataid in examples if counts.jobid is not None]
    )
    obstacles: dict[DatasetId, ChunkObstacle] = {}
    for counts, dataid in examples:
        if counts.jobid is None:
            key = ChunkKey(datasetid=counts.datasetid, dataid=dataid)
            obstacles[counts.datasetid] = no_producer(key, counts.is_registered)
        elif (answers := asked.get((counts.jobid, dataid))) is not None:
            obstacles[counts.datasetid] = first_obstacle(answers)
        else:
            obstacles[counts.datasetid] = ChunkObstacle(
                dataid=dataid, code=None, reason=f"it reads all chunks of an input; see: odf why {counts.jobid}"
            )
    return obstacles


def _dataset(
    counts: DatasetCounts,
    runnable: Mapping[JobId, RunnableCounts],
    pace: float | None,
    obstacle: ChunkObstacle | None,
    stale: Mapping[DatasetId, StaleCount],
) -> DatasetStatus:
    count = stale.get(counts.datasetid)
    of_producer = runnable.get(counts.jobid, RunnableCounts()) if counts.jobid is not None else RunnableCounts()
    unfinished = sum(counts.counts.get(word, 0) for word in _UNFINISHED) + counts.missing
    return DatasetStatus(
        **asdict(counts),
        runnable=of_producer.runnable,
        blocked=of_producer.blocked,
        stale=count.stale if count else 0,
        stale_is_left=count is not None and is_left_to_a_person(count),
        pace=pace,
        eta=timedelta(minutes=unfinished / pace) if pace and unfinished else None,
        obstacle=obstacle,
    )
