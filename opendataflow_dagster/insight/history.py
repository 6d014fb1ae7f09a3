"""history: what happened lately, whoever did it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from ..ledger import chunks
from ..ledger.chunks import Event
from ..ledger.database import Ledger, Row
from ..model.errors import UnknownName
from ..model.ids import ChunkKey, dataset_id, job_id
from ..model.status import Locktype
from ..protocol.gate import require_job
from .selection import require_dataset

_EVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Steering:
    """What a Job was limited to by whom."""

    at: datetime
    concurrency: int | None
    paused: bool
    reason: str | None
    by: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Redefinition:
    """What one act changed of a DataSet, or of a Job and its policy."""

    at: datetime
    by: str
    reason: str | None
    #: In words: `owner: ada -> grace`, `+ IN flights`, `password changed`.
    what: tuple[str, ...]


def recent(
    ledger: Ledger,
    *,
    since: datetime | None = None,
    datasetid: str | None = None,
    jobid: str | None = None,
    by: str | None = None,
    statuses: Sequence[str] | None = None,
    with_reads: bool = False,
    count: int = 50,
) -> list[Event]:
    """The newest first."""
    with ledger.statement() as statement:
        found = statement.rows(
            "recent_events",
            since=since or _EVER,
            datasetid=datasetid,
            jobid=jobid,
            by=by,
            statuses=list(statuses) if statuses else None,
            with_reads=with_reads,
            count=count,
        )
        if not found:
            # A name that nobody knows is no quiet one. A foreign client's Job has only its events.
            if datasetid is not None:
                require_dataset(statement, dataset_id(datasetid))
            if jobid is not None:
                require_job(statement, job_id(jobid))
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


def of_dataset(ledger: Ledger, datasetid: str) -> list[Redefinition]:
    """Who changed what is registered of it, the newest first."""
    return _redefinitions(ledger, datasetid, "dataset")


def of_job(ledger: Ledger, jobid: str) -> list[Redefinition]:
    return _redefinitions(ledger, jobid, "job", "job_policy")


def of_chunk(ledger: Ledger, key: ChunkKey, *, with_reads: bool = False) -> list[Event]:
    """Everything, the newest first."""
    with ledger.statement() as statement:
        found = chunks.history(statement, key)
    if not found:
        raise UnknownName(f"nothing ever happened to {key}; see the chunks with: odf chunks {key.datasetid} --list")
    return [one for one in reversed(found) if with_reads or one.locktype == Locktype.OUT]


def _redefinitions(ledger: Ledger, name: str, *relations: str, acts: int = 10) -> list[Redefinition]:
    with ledger.statement() as statement:
        found = statement.rows("definition_events", name=name, relations=list(relations), acts=acts)
    return [
        Redefinition(at=at, by=by, reason=reason, what=tuple(word for row in rows for word in _words(row)))
        for (at, by, reason), rows in groupby(found, lambda row: (row["at"], row["by"], row["reason"]))
    ]


def _words(row: Row) -> Iterator[str]:
    before, after = row["before"], row["after"]
    if before is not None and after is not None:
        yield from (f"{column}: {before[column]} -> {value}" for column, value in after.items())
    elif row["relation"] == "job":
        item = before or after
        name = f"{item['itemtype']} {item['datasetid']}" if item["datasetid"] else f"${item['itemtype']}"
        yield f"{'+' if before is None else '-'} {name}"
    else:
        what = "policy " if row["relation"] == "job_policy" else ""
        yield f"{what}{'new' if before is None else 'removed'}"
    if row["password_changed"]:
        yield "password changed"
