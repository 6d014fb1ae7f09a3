"""status: all DataSets at a glance. How far is each, what waits, what runs, and when will it be finished?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..ledger.database import Ledger, Row
from ..model.ids import ClaimId, DataId, DatasetId, JobId, RunId
from ..model.status import Status

#: Who has published nothing for so long is not on the way, and gets no ETA.
_STALLED = timedelta(minutes=15)
_WAITING = (Status.PENDING, Status.RESUBMIT)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetStatus:
    datasetid: DatasetId
    #: Its producer; None: someone else makes it.
    jobid: JobId | None
    #: How many chunks have which status; also words that only a foreign client knows.
    counts: Mapping[str, int]
    #: Since when the chunk that waits longest has waited.
    oldest_waiting: datetime | None
    #: Of its producer: chunks that can run now, and chunks with a no.
    runnable: int
    blocked: int
    #: Versions a minute, lately.
    pace: float | None
    #: Until all that is asked for is there, at this pace.
    eta: timedelta | None

    @property
    def chunks(self) -> int:
        return sum(self.counts.values())

    @property
    def progress(self) -> float | None:
        """READY of all that shall be produced."""
        wanted = self.chunks - self.counts.get(Status.SKIPPED, 0)
        return self.counts.get(Status.READY, 0) / wanted if wanted else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    datasetid: DatasetId
    jobid: JobId
    dataid: DataId
    claim_id: ClaimId
    attempt: int
    run_id: RunId | None
    since: datetime | None
    lease_until: datetime

    @classmethod
    def of(cls, row: Row) -> Running:
        return cls(**{name: row[name] for name in cls.__slots__})


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """A Job that an operator limits."""

    jobid: JobId
    concurrency: int | None
    paused: datetime | None
    reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Glance:
    datasets: tuple[DatasetStatus, ...]
    controls: tuple[Control, ...] = field(default=())
    #: The live claims, longest first; at most as many as were asked for.
    running: tuple[Running, ...] = field(default=())


def status(ledger: Ledger, *, running: int = 20) -> Glance:
    """One look at everything, in one transaction: the figures belong together."""
    with ledger.transaction() as transaction:
        transaction.rows("read_all")
        counted = transaction.rows("status_counts")
        waiting = {row["jobid"]: row for row in transaction.rows("waiting_counts")}
        paces = {row["datasetid"]: row for row in transaction.rows("pace")}
        live = transaction.rows("running_chunks", count=running)
        controls = transaction.rows("controls")
    by_dataset: dict[str, list[Row]] = {}
    for row in counted:
        by_dataset.setdefault(row["datasetid"], []).append(row)
    return Glance(
        datasets=tuple(
            _dataset(rows, waiting.get(rows[0]["jobid"]), paces.get(name)) for name, rows in by_dataset.items()
        ),
        controls=tuple(Control(**row) for row in controls),
        running=tuple(Running.of(row) for row in live),
    )


def _dataset(rows: list[Row], waiting: Row | None, pace: Row | None) -> DatasetStatus:
    counts = {row["status"]: row["chunks"] for row in rows if row["status"] is not None}
    a_minute = _pace(pace)
    missing = sum(counts.get(one, 0) for one in (*_WAITING, Status.RUNNING))
    return DatasetStatus(
        datasetid=DatasetId(rows[0]["datasetid"]),
        jobid=rows[0]["jobid"],
        counts=counts,
        oldest_waiting=min((row["oldest_waiting"] for row in rows if row["oldest_waiting"]), default=None),
        runnable=waiting["runnable"] if waiting else 0,
        blocked=waiting["blocked"] if waiting else 0,
        pace=a_minute,
        eta=timedelta(minutes=missing / a_minute) if a_minute and missing else None,
    )


def _pace(row: Row | None) -> float | None:
    if row is None or row["versions"] < 2 or row["now"] - row["last"] > _STALLED:
        return None
    # To now, not to the last one: who has become slow shall be seen to be slow.
    minutes = (row["now"] - row["first"]).total_seconds() / 60
    return row["versions"] / minutes if minutes > 0 else None
