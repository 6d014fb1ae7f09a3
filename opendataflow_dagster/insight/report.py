"""report: the figures of the HTML report, the metrics and the digest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from ..ledger import claims, overview, waiting
from ..ledger.chunks import Chunk
from ..ledger.database import Ledger
from ..ledger.overview import ChunkDurations as ChunkDurations
from ..ledger.overview import Throughput as Throughput
from ..ledger.retry import gives_way
from ..ledger.staleness import StaleCount, stale_counts
from ..model.errors import UnknownName
from ..model.ids import ChunkKey
from ..model.status import Status
from ..model.verdict import Verdict
from .causes import Cause, group_by_cause
from .heat_map import CellCount, HeatMap, badness, heat_maps
from .runs import NewestRun, newest_runs
from .selection import select_failed
from .status import DatasetStatus, StatusOverview, status
from .story import Story, story

#: Durations cover so many of the newest versions, and throughput so many.
_NEWEST = 20_000
_NEWEST_COUNTED = 200_000
_HOURS, _DAYS = 48, 30
#: The most heat-maps, and the most stories: what is worst comes first.
_MAPS = 60
_STORIES = 100
_RECENT_STORIES = 10
_NEED_NO_STORY = ("READY", "SKIPPED", "missing")
#: Neither finished nor being made.
_UNFINISHED = (Status.PENDING, Status.RESUBMIT, Status.FAILED)


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureReport:
    chunks: tuple[Chunk, ...]
    causes: tuple[Cause, ...]
    #: The five answers now, for the example of each cause.
    answers: tuple[Verdict, ...]
    #: What is stale now, whenever it became so.
    stale: tuple[StaleCount, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerReport:
    glance: StatusOverview
    #: Of each Job.
    newest_runs: tuple[NewestRun, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ThroughputReport:
    """Oldest first; the last hour and the last day are not over."""

    hours: tuple[Throughput, ...]
    days: tuple[Throughput, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CurrentStory:
    story: Story
    #: Of a chunk that is not finished. None: it is, or its Job reads all chunks of a DataSet, which is dear to ask.
    answers: Verdict | None


@gives_way
def report_ledger(ledger: Ledger) -> LedgerReport:
    return LedgerReport(glance=status(ledger), newest_runs=tuple(newest_runs(ledger)))


@gives_way
def report_failures(
    ledger: Ledger, *, since: datetime | None = None, until: datetime | None = None, ask: bool = True
) -> FailureReport:
    """`ask`: with the five answers for the example of each cause."""
    chunks = select_failed(ledger, since=since, until=until)
    causes = group_by_cause(chunks)
    answers: list[Verdict] = []
    with ledger.transaction() as transaction:
        for cause in causes if ask else ():
            answers += claims.ask(transaction, cause.example_job, [cause.example.dataid])
        stale = stale_counts(transaction)
    return FailureReport(chunks=tuple(chunks), causes=tuple(causes), answers=tuple(answers), stale=tuple(stale))


@gives_way
def chunk_durations(ledger: Ledger) -> list[ChunkDurations]:
    with ledger.statement() as statement:
        return overview.chunk_durations(statement, _NEWEST)


@gives_way
def report_throughput(ledger: Ledger, now: datetime) -> ThroughputReport:
    """By hours, and by days of this machine's time zone."""
    hour = now.astimezone().replace(minute=0, second=0, microsecond=0)
    hours = [hour - timedelta(hours=age) for age in range(_HOURS - 1, -2, -1)]
    # A day is not always 24 hours: the zone is applied to each midnight.
    midnight = hour.replace(hour=0, tzinfo=None)
    days = [(midnight - timedelta(days=age)).astimezone() for age in range(_DAYS - 1, -2, -1)]
    with ledger.statement() as statement:
        return ThroughputReport(
            hours=tuple(overview.throughput(statement, hours, _NEWEST_COUNTED)),
            days=tuple(overview.throughput(statement, days, _NEWEST_COUNTED)),
        )


@gives_way
def report_maps(ledger: Ledger, datasets: Sequence[DatasetStatus]) -> list[HeatMap]:
    """Of the DataSets with the most trouble, in the order of the names."""
    worst_first = sorted((each for each in datasets if each.chunks or each.missing), key=_trouble, reverse=True)
    drawn = sorted(each.datasetid for each in worst_first[:_MAPS])
    with ledger.transaction() as transaction:
        overview.allow_table_scans(transaction)
        incomplete = [each.datasetid for each in datasets if each.missing]
        return heat_maps(transaction, drawn, incomplete)


@gives_way
def report_stories(
    ledger: Ledger, failures: FailureReport, glance: StatusOverview, maps: Sequence[HeatMap]
) -> list[CurrentStory]:
    """Of an example of each cause, of the worst chunk of each cell, and of what runs and ran last."""
    wanted = dict.fromkeys(_worth_a_story(failures, glance, maps))
    stories = list(islice(_stories(ledger, wanted), _STORIES))
    unfinished = {
        each.key: (chunk.jobid, chunk.dataid)
        for each in stories
        for chunk in each.chunks
        if chunk.status in _UNFINISHED
    }
    with ledger.transaction() as transaction:
        asked = waiting.ask_each(transaction, list(dict.fromkeys(unfinished.values())))
    answers = {key: asked[chunk].verdict for key, chunk in unfinished.items() if chunk in asked}
    return [CurrentStory(story=each, answers=answers.get(each.key)) for each in stories]


def _worth_a_story(failures: FailureReport, glance: StatusOverview, maps: Sequence[HeatMap]) -> Iterator[ChunkKey]:
    yield from (cause.example for cause in failures.causes)
    yield from (ChunkKey(datasetid=chunk.datasetid, dataid=chunk.dataid) for chunk in glance.running)
    worst = [cell.worst for each in maps for cell in each.cells]
    unfinished = sorted(
        (count for count in worst if count.status not in _NEED_NO_STORY), key=lambda count: badness(count.status)
    )
    yield from map(_example, unfinished[: _STORIES - _RECENT_STORIES])
    # The newest of each DataSet.
    ready = [(count.since, count) for count in worst if count.status == Status.READY and count.since is not None]
    newest = {count.datasetid: count for _, count in sorted(ready, key=lambda entry: entry[0])}
    yield from map(_example, [*newest.values()][-_RECENT_STORIES:])


def _example(count: CellCount) -> ChunkKey:
    return ChunkKey(datasetid=count.datasetid, dataid=count.example)


def _stories(ledger: Ledger, keys: Iterable[ChunkKey]) -> Iterator[Story]:
    for key in keys:
        try:
            yield story(ledger, key)
        except UnknownName:
            continue  # it was deleted meanwhile


def _trouble(dataset: DatasetStatus) -> tuple[int, int, int]:
    return (dataset.counts.get("FAILED", 0), dataset.missing + dataset.stale, dataset.blocked)
