"""history: recent changes of chunks, limits and definitions, by any client. Newest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Unpack

from ..ledger import chunks, events, steering
from ..ledger.chunks import Event as Event
from ..ledger.database import Ledger
from ..ledger.events import DefinitionEvent, EventFilter, Relation
from ..ledger.names import unknown_chunks
from ..ledger.retry import gives_way
from ..ledger.steering import ControlChange
from ..model.ids import ChunkKey, dataset_id, job_id
from ..model.status import Locktype
from ..protocol.gate import require_job
from .selection import refuse_unknown_statuses, require_dataset

#: How many changes of a definition or a limit are shown.
_CHANGES = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionChange:
    """What one transaction changed of a DataSet, or of a Job and its policy."""

    at: datetime
    by: str
    reason: str | None
    #: Such as `owner: ada -> grace`, `+ IN flights`, `password changed`.
    what: tuple[str, ...]


@gives_way
def recent_events(ledger: Ledger, *, count: int = 50, **wanted: Unpack[EventFilter]) -> list[Event]:
    with ledger.statement() as statement:
        recent = events.recent_events(statement, count, wanted)
        if not recent:
            # No events, or a misspelled name? Only checked here: a foreign client's Job is known by its events alone.
            if (datasetid := wanted.get("datasetid")) is not None:
                require_dataset(statement, dataset_id(datasetid))
            if (jobid := wanted.get("jobid")) is not None:
                require_job(statement, job_id(jobid))
            refuse_unknown_statuses(wanted.get("statuses"), ())
    return recent


@gives_way
def chunk_history(ledger: Ledger, key: ChunkKey, *, with_reads: bool = False) -> list[Event]:
    with ledger.statement() as statement:
        history = chunks.history(statement, key)
        if not history:
            raise unknown_chunks(statement, [key])
    return [event for event in reversed(history) if with_reads or event.locktype == Locktype.OUT]


@gives_way
def control_changes(ledger: Ledger, jobid: str) -> list[ControlChange]:
    with ledger.statement() as statement:
        return steering.control_changes(statement, jobid, _CHANGES)


@gives_way
def dataset_changes(ledger: Ledger, datasetid: str) -> list[DefinitionChange]:
    return _definition_changes(ledger, datasetid, "dataset")


@gives_way
def job_changes(ledger: Ledger, jobid: str) -> list[DefinitionChange]:
    return _definition_changes(ledger, jobid, "job", "job_policy")


def _definition_changes(ledger: Ledger, name: str, *relations: Relation) -> list[DefinitionChange]:
    with ledger.statement() as statement:
        definition_events = events.definition_events(statement, name, relations, _CHANGES)
    return [
        DefinitionChange(at=at, by=by, reason=reason, what=tuple(text for event in group for text in _describe(event)))
        for (at, by, reason), group in groupby(definition_events, lambda event: (event.at, event.by, event.reason))
    ]


def _describe(event: DefinitionEvent) -> Iterator[str]:
    before, after = event.before, event.after
    if before is not None and after is not None:
        yield from (f"{column}: {before[column]} -> {value}" for column, value in after.items())
    elif event.relation == "job":
        item = before or after or {}
        name = f"{item['itemtype']} {item['datasetid']}" if item["datasetid"] else f"${item['itemtype']}"
        yield f"{'+' if before is None else '-'} {name}"
    else:
        what = "policy " if event.relation == "job_policy" else ""
        yield f"{what}{'new' if before is None else 'removed'}"
    if event.password_changed:
        yield "password changed"
