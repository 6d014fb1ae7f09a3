"""All DataSets of a code location, put together; and the mistakes that only show when they are."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from zoneinfo import ZoneInfo

import dagster as dg
from pyspark.sql.types import StructType

from ..engine.declaration import Declaration, DeclaredInput, ReadForeign
from ..model.check import refuse_unknown_columns, refuse_wrong_types
from ..model.dataset import Dataset
from ..model.errors import InvalidDefinition
from ..model.ids import DatasetId
from ..model.job import EQUAL, ChunkMapping, ChunksWithin, EqualChunk, Input, Job
from ..model.partitions import Partitions, TimePartitions
from ..warehouse.schema import schema_hash


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A declared DataSet with all that follows from the others and from the environment."""

    declaration: Declaration
    dataset: Dataset
    #: None: it is external.
    job: Job | None
    #: Differs for each DataSet, so that Dagster never puts two of them into one run of a backfill.
    chunks_per_run: int

    @property
    def asset_key(self) -> dg.AssetKey:
        return dg.AssetKey(self.dataset.datasetid)


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    entries: Mapping[DatasetId, Entry]

    @property
    def made(self) -> list[tuple[Entry, Job]]:
        """Those that this project makes."""
        return [(one, one.job) for one in self.entries.values() if one.job is not None]

    @property
    def schemas(self) -> dict[DatasetId, StructType]:
        return {
            name: one.declaration.schema for name, one in self.entries.items() if one.declaration.schema is not None
        }

    @property
    def foreign(self) -> dict[DatasetId, ReadForeign]:
        return {name: one.declaration.read for name, one in self.entries.items() if one.declaration.read is not None}


def catalogue(declarations: Iterable[Declaration], warehouse: str) -> Catalogue:
    declared = list(declarations)
    for one in declared:
        if not isinstance(one, Declaration):
            raise InvalidDefinition(f"{one!r} is no DataSet; declare it with @dataset or one of its kin")
    _refuse_twice(declared)
    known = {one.datasetid: one for one in declared}
    for one in declared:
        _refuse_unknown_inputs(one, known)
        _refuse_wrong_columns(one)
    _refuse_circles(declared)
    entries: dict[DatasetId, Entry] = {}
    taken: set[int] = set()
    for one in declared:
        chunks_per_run = next(count for count in range(one.chunks_per_run, sys.maxsize) if count not in taken)
        taken.add(chunks_per_run)
        entries[one.datasetid] = _entry(one, known, warehouse, chunks_per_run)
    return Catalogue(entries=entries)


def _entry(one: Declaration, known: Mapping[DatasetId, Declaration], warehouse: str, chunks_per_run: int) -> Entry:
    dataset = Dataset(
        datasetid=one.datasetid,
        location=one.root or (f"{warehouse.rstrip('/')}/{one.datasetid}" if one.is_made_here else None),
        partitions=one.partitions,
        schema_hash=schema_hash(one.schema) if one.schema is not None else None,
        foreign_ready=one.foreign_ready,
        skipped_input=one.skipped_input,
        repeats=one.repeats,
        timezone=one.timezone,
        owner=one.owner,
        domain=one.domain,
        description=one.description,
    )
    _refuse_changing_hours(one)
    inputs = tuple(Input(datasetid=source.datasetid, mapping=_mapping(one, source, known)) for source in one.inputs)
    job = (
        Job(jobid=one.jobid, inputs=inputs, outputs=(one.datasetid,), policy=one.policy, environment=one.environment)
        if one.is_made_here
        else None
    )
    return Entry(declaration=one, dataset=dataset, job=job, chunks_per_run=chunks_per_run)


def _mapping(one: Declaration, source: DeclaredInput, known: Mapping[DatasetId, Declaration]) -> ChunkMapping:
    mapping, whose = source.mapping or EQUAL, known[source.datasetid]
    ours, theirs = one.partitions, whose.partitions
    if isinstance(mapping, EqualChunk) and ours is not None and theirs is not None and _kind(ours) != _kind(theirs):
        raise InvalidDefinition(
            f"DataSet {one.datasetid} is {_kind(ours)}, its input {source.datasetid} is {_kind(theirs)}; "
            f"say which chunks it needs: mapping={{{source.parameter!r}: within(...)}}, ALL or ListedChunks(function)"
        )
    if isinstance(mapping, ChunksWithin):
        for of, said, declared in ((one, mapping.output, ours), (whose, mapping.input_partitions, theirs)):
            if said != declared:
                raise InvalidDefinition(
                    f"DataSet {one.datasetid}: within(...) of its input {source.datasetid} says that {of.datasetid} "
                    f"has {said}, but it has {declared or 'no partitions'}; give within(the partitions of "
                    f"{one.datasetid}, the partitions of {source.datasetid})"
                )
        if one.timezone != whose.timezone:
            raise InvalidDefinition(
                f"DataSet {one.datasetid} has times of {one.timezone}, its input {source.datasetid} of "
                f"{whose.timezone}; within(...) needs one time zone; give both the same, or use ListedChunks(function)"
            )
    return mapping


def _kind(partitions: Partitions) -> object:
    return partitions.to_json()["kind"]


def _refuse_changing_hours(one: Declaration) -> None:
    """Where the clock is put forward or back, an hour is missing or comes twice, and no dataid could name it."""
    if not isinstance(one.partitions, TimePartitions) or one.partitions.kind != "hourly":
        return
    zone, first = ZoneInfo(one.timezone), one.partitions.time_of(one.partitions.first).year
    years = range(first, max(first, datetime.now(zone).year) + 1)
    if len({datetime(year, month, 1, tzinfo=zone).utcoffset() for year in years for month in range(1, 13)}) > 1:
        raise InvalidDefinition(
            f"DataSet {one.datasetid} is hourly in {one.timezone}, where the clock changes; "
            f"let its timezone be UTC, and convert in the function"
        )


def _refuse_twice(declared: Iterable[Declaration]) -> None:
    names: dict[str, Declaration] = {}
    producers: dict[str, Declaration] = {}
    for one in declared:
        if one.datasetid in names:
            raise InvalidDefinition(f"DataSet {one.datasetid} has two producers; rename one of them")
        names[one.datasetid] = one
        if one.is_made_here and producers.setdefault(one.jobid, one) is not one:
            raise InvalidDefinition(
                f"job {one.jobid} makes both {producers[one.jobid].datasetid} and {one.datasetid}; give each a job"
            )


def _refuse_unknown_inputs(one: Declaration, known: Mapping[DatasetId, Declaration]) -> None:
    for source in one.inputs:
        if source.datasetid not in known:
            close = get_close_matches(source.datasetid, known, n=1)
            advice = f"did you mean {close[0]}?" if close else "declare it, or give the parameter a default"
            raise InvalidDefinition(
                f"DataSet {one.datasetid} reads {source.datasetid} (parameter {source.parameter}), "
                f"which is not declared; {advice}"
            )


def _refuse_circles(declared: Iterable[Declaration]) -> None:
    graph = {one.datasetid: [source.datasetid for source in one.inputs] for one in declared}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise InvalidDefinition(
            f"DataSets are made from themselves: {' <- '.join(error.args[1])}; take one input out of the circle"
        ) from None


def _refuse_wrong_columns(one: Declaration) -> None:
    """What a schema lets us know before anything runs."""
    if one.schema is None:
        return
    types = {column.name: column.dataType.simpleString() for column in one.schema.fields}
    for check in one.checks:
        refuse_unknown_columns(check, types, f"DataSet {one.datasetid}")
        refuse_wrong_types(check, types, f"DataSet {one.datasetid}")
