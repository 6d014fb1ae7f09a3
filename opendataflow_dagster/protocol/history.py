"""history: what happened lately, whoever did it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ..ledger import chunks
from ..ledger.chunks import Event
from ..ledger.database import Ledger
from ..model.errors import UnknownName
from ..model.ids import ChunkKey
from ..model.status import Locktype

_EVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Steering:
    """What a Job was limited to by whom."""

    at: datetime
    concurrency: int | None
    paused: bool
    reason: str | None
    by: str


def recent(
    ledger: Ledger,
    *,
    since: datetime | None = None,
    after: int = 0,
    datasetid: str | None = None,
    jobid: str | None = None,
    by: str | None = None,
    statuses: Sequence[str] | None = None,
    with_reads: bool = False,
    count: int = 50,
) -> list[Event]:
    """The newest first. `after`: only events that came after this one."""
    with ledger.statement() as statement:
        found = statement.rows(
            "recent_events",
            since=since or _EVER,
            after=after,
            datasetid=datasetid,
            jobid=jobid,
            by=by,
            statuses=list(statuses) if statuses else None,
            with_reads=with_reads,
            count=count,
        )
    return [Event(**row) for row in found]


def of_control(ledger: Ledger, jobid: str, *, count: int = 10) -> list[Steering]:
    """Who limited the Job, the newest first."""
    with ledger.statement() as statement:
        found = statement.rows("control_events", jobid=jobid, count=count)
    return [
        Steering(
            at=row["at"],
            concurrency=row["concurrency"],
            paused=row["paused"] is not None,
            reason=row["reason"],
            by=row["actor"] or row["login"],
        )
        for row in found
    ]


def of_chunk(ledger: Ledger, key: ChunkKey, *, with_reads: bool = False) -> list[Event]:
    """Everything, the newest first."""
    with ledger.statement() as statement:
        found = chunks.history(statement, key)
    if not found:
        raise UnknownName(f"nothing ever happened to {key}; see the chunks with: odf chunks {key.datasetid} --list")
    return [one for one in reversed(found) if with_reads or one.locktype == Locktype.OUT]
