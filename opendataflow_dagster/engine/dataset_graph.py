"""The DataSets of a code location as a graph, with the mistakes that only show when they are put together."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from ..model.check import GROUP_ROWS, Check, refuse_unknown_columns, refuse_wrong_types
from ..model.dataset import Dataset
from ..model.definition import Definition, Registry, TableAddress
from ..model.errors import InvalidDefinition, OpenDataFlowError
from ..model.ids import DatasetId
from ..model.job import EQUAL, ChunkMapping, ChunksWithin, EqualChunk, Input, Job
from ..model.job_graph import refuse_cycles
from ..model.partitions import Partitions, TimePartitions
from ..model.text import did_you_mean
from ..protocol.register import register
from ..protocol.throttle import throttle_first
from .declaration import Declaration, DeclaredInput, ReadForeign
from .spark_source import SparkSource
from .sql_columns import columns_in

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..ledger.database import Ledger


@dataclass(frozen=True, kw_only=True)
class DatasetNode:
    """A declared DataSet, completed by what follows from the others and from the environment."""

    declaration: Declaration
    dataset: Dataset
    #: None: the DataSet is external.
    job: Job | None
    #: Differs for each DataSet, so that Dagster never puts two of them into one run of a backfill.
    chunks_per_run: int


@dataclass(frozen=True, kw_only=True)
class DatasetGraph:
    nodes: Mapping[DatasetId, DatasetNode]
    schemas: Mapping[DatasetId, StructType]
    #: How to read chunks that have no manifest.
    foreign: Mapping[DatasetId, ReadForeign]

    @property
    def produced(self) -> list[tuple[DatasetNode, Job]]:
        """The DataSets that this project makes."""
        return [(node, node.job) for node in self.nodes.values() if node.job is not None]

    def producers_first(self) -> list[DatasetNode]:
        inputs = {
            name: [source.datasetid for source in node.job.inputs] if node.job else []
            for name, node in self.nodes.items()
        }
        return [self.nodes[name] for name in TopologicalSorter(inputs).static_order()]


def build_graph(declarations: Iterable[Declaration], warehouse: str) -> DatasetGraph:
    """`warehouse` is the folder or URL below which DataSets have their roots."""
    declared = list(declarations)
    for declaration in declared:
        if not isinstance(declaration, Declaration):
            raise InvalidDefinition(
                f"{declaration!r} is not a DataSet; declare it with @dataset, sql_dataset, script_dataset or "
                f"external_dataset"
            )
    _refuse_repeated_names(declared)
    known = {declaration.datasetid: declaration for declaration in declared}
    for declaration in declared:
        _refuse_unknown_inputs(declaration, known)
    for declaration in declared:
        _refuse_wrong_columns(declaration, known)
    nodes: dict[DatasetId, DatasetNode] = {}
    taken: set[int] = set()
    for declaration in declared:
        chunks_per_run = next(count for count in range(declaration.chunks_per_run, sys.maxsize) if count not in taken)
        taken.add(chunks_per_run)
        nodes[declaration.datasetid] = _node(declaration, known, warehouse, chunks_per_run)
    graph = DatasetGraph(
        nodes=nodes,
        schemas={name: node.declaration.schema for name, node in nodes.items() if node.declaration.schema is not None},
        foreign={name: node.declaration.read for name, node in nodes.items() if node.declaration.read is not None},
    )
    refuse_cycles(
        inputs={job.jobid: {source.datasetid for source in job.inputs} for _, job in graph.produced},
        outputs={job.jobid: set(job.outputs) for _, job in graph.produced},
    )
    return graph


def register_graph(ledger: Ledger, graph: DatasetGraph) -> None:
    """Register all DataSets and Jobs; code is the master. A code location whose ledger is unavailable fails to load."""
    try:
        register(ledger, [node.dataset for node in graph.nodes.values()], [job for _, job in graph.produced])
        for node, job in graph.produced:
            if node.declaration.concurrency is not None:
                throttle_first(ledger, job.jobid, node.declaration.concurrency)
    except OpenDataFlowError as error:
        error.add_note("The DataSets of this code location were not registered in the ledger, so it is not loaded.")
        raise


def registry_of(graphs: Iterable[DatasetGraph]) -> Registry:
    """What `register_graph` would register, as a value."""
    nodes = [node for graph in graphs for node in graph.nodes.values()]
    return Registry(
        datasets=tuple(Definition(dataset=node.dataset, connection=TableAddress()) for node in nodes),
        jobs=tuple(node.job for node in nodes if node.job is not None),
    )


def _node(
    declaration: Declaration, known: Mapping[DatasetId, Declaration], warehouse: str, chunks_per_run: int
) -> DatasetNode:
    default_root = f"{warehouse.rstrip('/')}/{declaration.datasetid}" if declaration.is_produced else None
    dataset = Dataset(
        datasetid=declaration.datasetid,
        location=declaration.root or default_root,
        partitions=declaration.partitions,
        schema_hash=_schema_hash(declaration),
        foreign_ready=declaration.foreign_ready,
        skipped_input=declaration.skipped_input,
        on_new_input=declaration.on_new_input,
        repeats=declaration.repeats,
        timezone=declaration.timezone,
        owner=declaration.owner,
        domain=declaration.domain,
        description=declaration.description,
        code_version=declaration.current_code(),
        expected_by=declaration.expected_by,
        fresh_within=declaration.fresh_within,
    )
    _refuse_changing_hours(declaration)
    job = None
    if declaration.is_produced:
        job = Job(
            jobid=declaration.jobid,
            inputs=tuple(
                Input(datasetid=source.datasetid, mapping=_mapping(declaration, source, known))
                for source in declaration.inputs
            ),
            outputs=(declaration.datasetid,),
            policy=declaration.policy,
            environment=declaration.environment,
        )
    return DatasetNode(declaration=declaration, dataset=dataset, job=job, chunks_per_run=chunks_per_run)


def _schema_hash(declaration: Declaration) -> str | None:
    if declaration.schema is None:
        return None
    from ..warehouse.schema import schema_hash

    return schema_hash(declaration.schema)


def _mapping(declaration: Declaration, source: DeclaredInput, known: Mapping[DatasetId, Declaration]) -> ChunkMapping:
    mapping, other = source.mapping or EQUAL, known[source.datasetid]
    ours, theirs = declaration.partitions, other.partitions
    if isinstance(mapping, EqualChunk) and ours is not None and theirs is not None and _kind(ours) != _kind(theirs):
        raise InvalidDefinition(
            f"DataSet {declaration.datasetid} is {_kind(ours)}, its input {source.datasetid} is {_kind(theirs)}; "
            f"declare the chunks it needs: mapping={{{source.parameter!r}: within(...)}}, ALL or ListedChunks(function)"
        )
    if isinstance(mapping, ChunksWithin):
        given = ((declaration, mapping.output, ours), (other, mapping.input_partitions, theirs))
        for owner, stated, declared in given:
            if stated != declared:
                raise InvalidDefinition(
                    f"DataSet {declaration.datasetid}: within(...) of its input {source.datasetid} gives "
                    f"{owner.datasetid} the partitions {stated}, but they are {declared or 'not declared'}; write "
                    f"within(partitions of {declaration.datasetid}, partitions of {source.datasetid})"
                )
        if declaration.timezone != other.timezone:
            raise InvalidDefinition(
                f"DataSet {declaration.datasetid} is in time zone {declaration.timezone}, its input "
                f"{source.datasetid} in {other.timezone}; within(...) needs the same time zone, ListedChunks(function) "
                f"does not"
            )
    return mapping


def _kind(partitions: Partitions) -> object:
    return partitions.to_json()["kind"]


def _refuse_changing_hours(declaration: Declaration) -> None:
    """Where the clock is set forward or back, an hour is missing or repeated, so a dataid could be ambiguous."""
    partitions = declaration.partitions
    if not isinstance(partitions, TimePartitions) or partitions.kind != "hourly":
        return
    zone, first = ZoneInfo(declaration.timezone), partitions.time_of(partitions.first).year
    years = range(first, max(first, datetime.now(zone).year) + 1)
    if len({datetime(year, month, 1, tzinfo=zone).utcoffset() for year in years for month in range(1, 13)}) > 1:
        raise InvalidDefinition(
            f"DataSet {declaration.datasetid} is hourly in {declaration.timezone}, which has daylight saving time; "
            f"declare timezone='UTC', and convert in the function"
        )


def _refuse_repeated_names(declared: Iterable[Declaration]) -> None:
    names: set[str] = set()
    jobs: dict[str, Declaration] = {}
    for declaration in declared:
        if declaration.datasetid in names:
            raise InvalidDefinition(f"DataSet {declaration.datasetid} is declared twice; rename one of them")
        names.add(declaration.datasetid)
        if declaration.is_produced and jobs.setdefault(declaration.jobid, declaration) is not declaration:
            raise InvalidDefinition(
                f"job {declaration.jobid} makes both {jobs[declaration.jobid].datasetid} and {declaration.datasetid}; "
                f"give each DataSet its own job"
            )


def _refuse_unknown_inputs(declaration: Declaration, known: Mapping[DatasetId, Declaration]) -> None:
    for source in declaration.inputs:
        if source.datasetid not in known:
            advice = did_you_mean(source.datasetid, known, "declare it, or give the parameter a default")
            raise InvalidDefinition(
                f"DataSet {declaration.datasetid} reads {source.datasetid} (parameter {source.parameter}), "
                f"which is not declared; {advice}"
            )


def _refuse_wrong_columns(declaration: Declaration, known: Mapping[DatasetId, Declaration]) -> None:
    """What a schema or a query lets us know before anything runs."""
    columns = _columns(declaration, known) if declaration.checks else None
    if columns is None:
        return
    for check in declaration.checks:
        refuse_unknown_columns(_with_columns_of_sql(check), columns, f"DataSet {declaration.datasetid}")
        if declaration.schema is not None:
            types = {column.name: column.dataType.simpleString() for column in declaration.schema.fields}
            refuse_wrong_types(check, types, f"DataSet {declaration.datasetid}")


def _columns(
    declaration: Declaration, known: Mapping[DatasetId, Declaration], consumers: tuple[DatasetId, ...] = ()
) -> Sequence[str] | None:
    """None: only a run shows them."""
    if declaration.schema is not None:
        return [column.name for column in declaration.schema.fields]
    if not isinstance(declaration.source, SparkSource) or declaration.datasetid in consumers:
        return None
    inputs = {
        source.parameter: columns
        for source in declaration.inputs
        if (columns := _columns(known[source.datasetid], known, (*consumers, declaration.datasetid))) is not None
    }
    return declaration.source.columns(inputs)


def _with_columns_of_sql(check: Check) -> Check:
    """With the columns that its aggregates read, such as those of the predicate of `holds`."""
    read = dict.fromkeys(column for aggregate in check.aggregates for column in columns_in(aggregate))
    if check.group_by:
        read.pop(GROUP_ROWS, None)
    return replace(check, columns=tuple(dict.fromkeys([*check.columns, *read])))
