"""The dataids of a DataSet as Dagster's partitions, and the mapping of chunks as Dagster's partition mapping.

Dagster uses the mapping to draw the graph and to order a backfill. The ledger decides what a chunk needs.
"""

from __future__ import annotations

from datetime import datetime

import dagster as dg

from ..engine.declaration import Declaration
from ..model.errors import InvalidDefinition
from ..model.ids import DataId
from ..model.job import ChunkMapping, ChunksWithin, EqualChunk
from ..model.partitions import Partitions, RangePartitions, StaticPartitions, TimePartitions

# Dagster lists all keys of such partitions whenever a page shows them.
_MOST_KEYS = 100_000


def partitions_of(declaration: Declaration) -> dg.PartitionsDefinition[str]:
    match declaration.partitions:
        case None:
            return dg.DynamicPartitionsDefinition(name=declaration.datasetid)
        case StaticPartitions(keys=keys):
            return _static(declaration, keys)
        case RangePartitions() as numbers:
            if (numbers.last - numbers.first) // numbers.step >= _MOST_KEYS:
                raise InvalidDefinition(
                    f"DataSet {declaration.datasetid} has more than {_MOST_KEYS:,} chunks; use a larger step"
                )
            return _static(declaration, tuple(numbers.all()))
        case TimePartitions() as times:
            return _time(times, declaration.timezone)


def _static(declaration: Declaration, keys: tuple[DataId, ...]) -> dg.StaticPartitionsDefinition:
    try:
        return dg.StaticPartitionsDefinition(list(keys))
    except dg.DagsterInvalidDefinitionError as error:
        raise InvalidDefinition(f"DataSet {declaration.datasetid}: {error}; choose other dataids") from error


def _time(times: TimePartitions, timezone: str) -> dg.PartitionsDefinition[str]:
    first = times.time_of(times.first)
    # Dagster's end is exclusive: the start of the first chunk that does not exist.
    last = times.end_of(times.last) if times.last is not None else None
    match times.kind:
        case "hourly":
            return dg.HourlyPartitionsDefinition(start_date=first, end_date=last, timezone=timezone)
        case "daily":
            return dg.DailyPartitionsDefinition(start_date=first, end_date=last, timezone=timezone)
        case "weekly":
            return dg.WeeklyPartitionsDefinition(
                start_date=first, end_date=last, timezone=timezone, day_offset=_days_since_sunday(first)
            )
        case "monthly":
            return dg.MonthlyPartitionsDefinition(start_date=first, end_date=last, timezone=timezone)


def _days_since_sunday(day: datetime) -> int:
    return day.isoweekday() % 7


def mapping_of(mapping: ChunkMapping, ours: Partitions | None, theirs: Partitions | None) -> dg.PartitionMapping:
    match mapping:
        case EqualChunk() if (ours is None) == (theirs is None):
            return dg.IdentityPartitionMapping()
        case ChunksWithin():
            return dg.TimeWindowPartitionMapping()
        case _:
            # Dagster has no mapping by a function, nor between static and dynamic partitions. With all partitions as
            # the mapping, a backfill makes the inputs first.
            return dg.AllPartitionMapping()
