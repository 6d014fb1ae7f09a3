"""The history: changes of chunks and of definitions, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, TypedDict

from .chunks import Event
from .database import Transaction

Relation: TypeAlias = Literal["dataset", "job", "job_policy"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionEvent:
    """A change of one row of the registry. An update has only the changed columns in `before` and `after`."""

    at: datetime
    relation: Relation
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    password_changed: bool
    reason: str | None
    by: str


class EventFilter(TypedDict, total=False):
    since: datetime | None
    datasetid: str | None
    jobid: str | None
    by: str | None
    statuses: Sequence[str] | None
    with_reads: bool


_ANY: Final = EventFilter(since=None, datasetid=None, jobid=None, by=None, statuses=None, with_reads=False)


def recent_events(transaction: Transaction, count: int, wanted: EventFilter) -> list[Event]:
    events = transaction.rows("recent_events", count=count, **(_ANY | wanted))
    return [Event(**row) for row in events]


def definition_events(
    transaction: Transaction, name: str, relations: Sequence[Relation], changes: int
) -> list[DefinitionEvent]:
    """Of the newest changes; the rows of one change have the same time."""
    events = transaction.rows("definition_events", name=name, relations=list(relations), changes=changes)
    return [DefinitionEvent(**row) for row in events]
