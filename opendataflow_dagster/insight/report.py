"""report: the figures of the HTML report, the metrics and the digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..ledger import claims, overview
from ..ledger.chunks import Chunk
from ..ledger.database import Ledger
from ..ledger.overview import ChunkDurations as ChunkDurations
from ..ledger.overview import HourlyThroughput as HourlyThroughput
from ..ledger.retry import gives_way
from ..model.ids import DatasetId
from ..model.verdict import Verdict
from .causes import Cause, group_by_cause
from .runs import SlaCheck, check_slas
from .selection import select_failed
from .status import StatusOverview, status

#: Durations and throughput cover so many of the newest versions.
_NEWEST = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureReport:
    chunks: tuple[Chunk, ...]
    causes: tuple[Cause, ...]
    #: The five answers now, for the example of each cause.
    answers: tuple[Verdict, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerReport:
    glance: StatusOverview
    sla: tuple[SlaCheck, ...]


@gives_way
def report_ledger(ledger: Ledger) -> LedgerReport:
    return LedgerReport(glance=status(ledger), sla=tuple(check_slas(ledger)))


@gives_way
def report_failures(
    ledger: Ledger, *, since: datetime | None = None, until: datetime | None = None, ask: bool = True
) -> FailureReport:
    """`ask`: with the five answers for the example of each cause."""
    chunks = select_failed(ledger, since=since, until=until)
    causes = group_by_cause(chunks)
    answers: list[Verdict] = []
    if ask:
        with ledger.transaction() as transaction:
            for cause in causes:
                answers += claims.ask(transaction, cause.example_job, [cause.example.dataid])
    return FailureReport(chunks=tuple(chunks), causes=tuple(causes), answers=tuple(answers))


@gives_way
def chunk_durations(ledger: Ledger) -> list[ChunkDurations]:
    with ledger.statement() as statement:
        return overview.chunk_durations(statement, _NEWEST)


@gives_way
def hourly_throughput(ledger: Ledger, *, hours: int = 48) -> list[HourlyThroughput]:
    with ledger.statement() as statement:
        return overview.hourly_throughput(statement, hours, _NEWEST)


@gives_way
def chunk_statuses(ledger: Ledger, datasetids: Sequence[DatasetId]) -> dict[DatasetId, list[tuple[str, str | None]]]:
    """Dataid and status of every chunk, in natural order."""
    with ledger.statement() as statement:
        return overview.chunk_statuses(statement, datasetids)
