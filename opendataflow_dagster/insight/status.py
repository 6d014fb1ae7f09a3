"""status: all DataSets at a glance. Progress, what waits, what runs, and when it will be finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

from ..ledger import overview, steering
from ..ledger.database import Ledger
from ..ledger.overview import DatasetCounts, RunnableCounts
from ..ledger.overview import RunningChunk as RunningChunk
from ..ledger.steering import JobControl as JobControl
from ..model.ids import JobId
from ..model.status import Status

_UNFINISHED = (Status.PENDING, Status.RESUBMIT, Status.RUNNING)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetStatus(DatasetCounts):
    #: Chunks of its producing Job that can run now, and chunks that are refused.
    runnable: int
    blocked: int
    #: Versions per minute; None if nothing was published recently.
    pace: float | None
    #: Time until no chunk waits or runs, at this pace.
    eta: timedelta | None

    @property
    def chunks(self) -> int:
        return sum(self.counts.values())

    @property
    def progress(self) -> float | None:
        """The fraction that is READY, not counting SKIPPED chunks."""
        wanted = self.chunks - self.counts.get(Status.SKIPPED, 0)
        return self.counts.get(Status.READY, 0) / wanted if wanted else None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusOverview:
    datasets: tuple[DatasetStatus, ...]
    controls: tuple[JobControl, ...] = ()
    #: Live claims, oldest first; at most as many as requested.
    running: tuple[RunningChunk, ...] = ()


def status(ledger: Ledger, *, running: int = 20) -> StatusOverview:
    """One transaction, so that the figures are consistent."""
    with ledger.transaction() as transaction:
        overview.allow_table_scans(transaction)
        runnable = overview.runnable_counts(transaction)
        paces = overview.paces(transaction)
        return StatusOverview(
            datasets=tuple(
                _dataset(counts, runnable, paces.get(counts.datasetid))
                for counts in overview.dataset_counts(transaction)
            ),
            controls=tuple(steering.controls(transaction)),
            running=tuple(overview.running_chunks(transaction, running)),
        )


def _dataset(counts: DatasetCounts, runnable: Mapping[JobId, RunnableCounts], pace: float | None) -> DatasetStatus:
    of_producer = runnable.get(counts.jobid, RunnableCounts()) if counts.jobid is not None else RunnableCounts()
    unfinished = sum(counts.counts.get(word, 0) for word in _UNFINISHED)
    return DatasetStatus(
        **asdict(counts),
        runnable=of_producer.runnable,
        blocked=of_producer.blocked,
        pace=pace,
        eta=timedelta(minutes=unfinished / pace) if pace and unfinished else None,
    )
