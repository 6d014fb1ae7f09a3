"""figures: what a report, a metric or a digest says. One look at everything, and at what failed in a window of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..ledger import claims
from ..ledger.chunks import Chunk
from ..ledger.database import Ledger
from ..model.ids import DatasetId, JobId
from ..model.verdict import Verdict
from .causes import Cause, causes
from .runs import Sla, sla
from .selection import failed
from .status import Glance, status

#: The newest versions are looked at; older ones say nothing about today.
_NEWEST = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Duration:
    """From claim to publication."""

    jobid: JobId
    chunks: int
    median: timedelta
    p95: timedelta
    longest: timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Hour:
    hour: datetime
    versions: int
    rows: int
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Failures:
    chunks: tuple[Chunk, ...]
    causes: tuple[Cause, ...]
    #: The five answers now, for the example of each cause.
    answers: tuple[Verdict, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    glance: Glance
    sla: tuple[Sla, ...]


def figures(ledger: Ledger) -> Figures:
    return Figures(glance=status(ledger), sla=tuple(sla(ledger)))


def failures(
    ledger: Ledger, *, since: datetime | None = None, until: datetime | None = None, ask: bool = True
) -> Failures:
    chunks = failed(ledger, since=since, until=until)
    found = causes(chunks)
    if not ask:
        return Failures(chunks=tuple(chunks), causes=tuple(found), answers=())
    with ledger.transaction() as transaction:
        answers = [
            verdict for one in found for verdict in claims.ask(transaction, one.example_job, [one.example.dataid])
        ]
    return Failures(chunks=tuple(chunks), causes=tuple(found), answers=tuple(answers))


def durations(ledger: Ledger) -> list[Duration]:
    with ledger.statement() as statement:
        return [
            Duration(
                jobid=JobId(row["jobid"]),
                chunks=row["chunks"],
                median=timedelta(seconds=row["median"]),
                p95=timedelta(seconds=row["p95"]),
                longest=timedelta(seconds=row["longest"]),
            )
            for row in statement.rows("durations", count=_NEWEST)
        ]


def throughput(ledger: Ledger, *, hours: int = 48) -> list[Hour]:
    with ledger.statement() as statement:
        return [Hour(**row) for row in statement.rows("throughput", hours=hours, count=_NEWEST)]


def heat(ledger: Ledger, datasetids: Sequence[DatasetId]) -> dict[DatasetId, list[tuple[str, str | None]]]:
    """Dataid and status of every chunk, in natural order."""
    found: dict[DatasetId, list[tuple[str, str | None]]] = {}
    with ledger.transaction() as transaction:
        for row in transaction.rows("heat", datasetids=list(datasetids)):
            found.setdefault(DatasetId(row["datasetid"]), []).append((row["dataid"], row["status"]))
    return found
