"""What an author declares: a DataSet, and how its chunks are made.

    @dataset(partitions=daily("2013-01-01", "2013-12-31"), checks=[not_null("carrier")])
    def clean_flights(raw_flights: DataFrame) -> DataFrame: ...

A declaration is still the plain function when it is called, so that a test needs nothing of the framework.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, Unpack

from ..model.check import Check, refuse_repeated
from ..model.errors import InvalidDefinition
from ..model.ids import DataId, DatasetId, JobId, dataset_id, job_id
from ..model.job import ChunkMapping, Policy
from ..model.partitions import Partitions
from .options import Options, refuse_wrong_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from .chunk import ChunkContext, Inputs

CONTEXT = "context"

#: Makes one chunk. What it returns is looked at afterwards: it must be a DataFrame.
Compute: TypeAlias = "Callable[[Inputs, ChunkContext], object]"
#: Reads a chunk of an external DataSet that has no manifest.
ReadForeign: TypeAlias = "Callable[[SparkSession, DataId], DataFrame]"


@dataclass(frozen=True, kw_only=True)
class DeclaredInput:
    #: What the function calls it.
    parameter: str
    datasetid: DatasetId
    #: None: the author said nothing; the equal chunk, if the partitions are of one kind.
    mapping: ChunkMapping | None = None


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """One DataSet: made by `compute`, or by the script in `command`, or external, which is by somebody else."""

    datasetid: DatasetId
    kind: Literal["python", "sql", "script", "external"]
    compute: Compute | None = None
    command: tuple[str, ...] = ()
    #: What the author wrote, for calls in tests.
    function: Callable[..., object] | None = None
    read: ReadForeign | None = None
    inputs: tuple[DeclaredInput, ...] = ()
    #: The producing Job; it has the DataSet's name unless the author gave it another.
    jobid: JobId
    partitions: Partitions | None = None
    checks: tuple[Check, ...] = ()
    schema: StructType | None = None
    policy: Policy = field(default_factory=Policy)
    concurrency: int | None = None
    root: str | None = None
    chunks_per_run: int = 1000
    planned: bool = False
    owner: str | None = None
    domain: str | None = None
    description: str | None = None
    timezone: str = "UTC"
    foreign_ready: Literal["trusted", "refused"] | None = None
    skipped_input: Literal["waits", "passes"] = "waits"
    repeats: bool = False
    table: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: object, **named: object) -> object:
        if self.function is None:
            raise InvalidDefinition(f"DataSet {self.datasetid} is {self.kind}: it has no function that could be called")
        return self.function(*arguments, **named)

    @property
    def is_made_here(self) -> bool:
        return self.kind != "external"

    def __post_init__(self) -> None:
        if self.is_made_here and not re.fullmatch("[A-Za-z0-9_]+", self.datasetid):
            raise InvalidDefinition(
                f"DataSet {self.datasetid!r} cannot be an asset of Dagster; use letters, digits and _ alone"
            )
        # Dagster makes the name of an input from it.
        if not re.fullmatch("[A-Za-z0-9_.-]+", self.datasetid):
            raise InvalidDefinition(
                f"external DataSet {self.datasetid!r} cannot be an asset of Dagster; "
                f"use letters, digits, _, . and - alone"
            )
        if self.is_made_here and not re.fullmatch("[A-Za-z0-9_]+", self.jobid):
            raise InvalidDefinition(f"job {self.jobid!r} cannot be a job of Dagster; use letters, digits and _ alone")
        if not re.fullmatch("[A-Za-z0-9_]+", self.domain or "_"):
            raise InvalidDefinition(
                f"DataSet {self.datasetid}: the domain {self.domain!r} cannot be a group of Dagster; "
                f"use letters, digits and _ alone"
            )
        if self.chunks_per_run < 1:
            raise InvalidDefinition(
                f"DataSet {self.datasetid}: chunks_per_run is {self.chunks_per_run}; give at least 1"
            )
        if self.concurrency is not None and self.concurrency < 1:
            raise InvalidDefinition(f"DataSet {self.datasetid}: concurrency is {self.concurrency}; give at least 1")
        refuse_repeated(self.checks, f"DataSet {self.datasetid}")


class Decorator(Protocol):
    def __call__(self, function: Callable[..., object], /) -> Declaration: ...


def dataset(name: str | None = None, **options: Unpack[Options]) -> Decorator:
    """Declare the DataSet that this function makes, chunk by chunk; it has the function's name unless given another.

    Every parameter without a default is an input DataSet; one named `context` gets the ChunkContext.
    """

    if callable(name):
        raise InvalidDefinition("@dataset stands without parentheses; write @dataset() or @dataset(partitions=...)")

    def declare(function: Callable[..., object]) -> Declaration:
        named = dataset_id(name or function.__name__)
        refuse_wrong_options(named, options)
        parameters, takes_context = _parameters(named, function, options.get("inputs", {}))

        def compute(inputs: Inputs, context: ChunkContext) -> object:
            arguments: dict[str, object] = {one: inputs.frame(one) for one in parameters}
            return function(**arguments, **({CONTEXT: context} if takes_context else {}))

        said = options.copy()
        said.setdefault("description", inspect.getdoc(function))
        return declare_with(named, "python", parameters, compute, said, function)

    return declare


def external_dataset(
    name: str,
    *,
    partitions: Partitions | None = None,
    location: str | None = None,
    read: ReadForeign | None = None,
    trusted: bool = True,
    owner: str | None = None,
    domain: str | None = None,
    description: str | None = None,
    timezone: str = "UTC",
) -> Declaration:
    """A DataSet that somebody else makes. Its chunks are announced: by the verb, or by READY typed in SQL.

    `read` reads a chunk that was announced without a manifest; with one, its files are known.
    """
    said: dict[str, object] = {"partitions": partitions, "owner": owner, "domain": domain, "description": description}
    refuse_wrong_options(name, {**said, "timezone": timezone})
    if read is not None and not callable(read):
        raise InvalidDefinition(f"DataSet {name}: read is {read!r}; give a function of a Spark session and a dataid")
    return Declaration(
        datasetid=dataset_id(name),
        jobid=job_id(name),
        kind="external",
        read=read,
        partitions=partitions,
        root=location,
        foreign_ready="trusted" if trusted else "refused",
        owner=owner,
        domain=domain,
        description=description,
        timezone=timezone,
    )


def declare_with(
    name: DatasetId,
    kind: Literal["python", "sql", "script"],
    parameters: Sequence[str],
    compute: Compute | None,
    options: Options,
    function: Callable[..., object] | None = None,
) -> Declaration:
    """The options were looked at."""
    return Declaration(
        datasetid=name,
        kind=kind,
        compute=compute,
        function=function,
        inputs=_inputs(name, parameters, options.get("inputs", {}), options.get("mapping", {})),
        jobid=job_id(options.get("job") or name),
        partitions=options.get("partitions"),
        checks=tuple(options.get("checks", ())),
        schema=options.get("schema"),
        policy=options.get("policy", Policy()),
        concurrency=options.get("concurrency"),
        root=options.get("root"),
        chunks_per_run=options.get("chunks_per_run", 1000),
        planned=options.get("planned", False),
        owner=options.get("owner"),
        domain=options.get("domain"),
        description=options.get("description"),
        timezone=options.get("timezone", "UTC"),
        skipped_input=options.get("skipped_input", "waits"),
        repeats=options.get("repeats", False),
        table=options.get("table", False),
    )


def _parameters(
    name: str, function: Callable[..., object], named: Mapping[str, object]
) -> tuple[tuple[str, ...], bool]:
    """The inputs, and whether it takes the context."""
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise InvalidDefinition(f"DataSet {name}: its function yields or awaits; let it return one DataFrame")
    parameters = inspect.signature(function).parameters
    for one in parameters.values():
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise InvalidDefinition(
                f"DataSet {name}: the parameter {one} is not a name for one input; name every input for itself"
            )
    without_default = [one.name for one in parameters.values() if one.default is one.empty or one.name in named]
    return tuple(one for one in without_default if one != CONTEXT), CONTEXT in parameters


def _inputs(
    whose: str, parameters: Sequence[str], named: Mapping[str, str | Declaration], mappings: Mapping[str, ChunkMapping]
) -> tuple[DeclaredInput, ...]:
    """Every option must belong to an input that there is."""
    given: Mapping[str, Mapping[str, object]] = {"inputs": named, "mapping": mappings}
    for option, names in given.items():
        if unknown := sorted(set(names) - set(parameters)):
            raise InvalidDefinition(
                f"DataSet {whose}: {option} names {', '.join(unknown)}, which it does not read; "
                f"it reads {', '.join(parameters) or 'nothing'}"
            )
    for parameter, mapping in mappings.items():
        if not isinstance(mapping, ChunkMapping):
            raise InvalidDefinition(
                f"DataSet {whose}: the mapping of {parameter} is {mapping!r}; "
                f"give EQUAL, ALL, within(...) or ListedChunks(function)"
            )
    for parameter, source in named.items():
        if not isinstance(source, str | Declaration):
            raise InvalidDefinition(
                f"DataSet {whose}: the input {parameter} is {source!r}; give the name of a DataSet, or its declaration"
            )
    sources = {one: named.get(one, one) for one in parameters}
    return tuple(
        DeclaredInput(
            parameter=one,
            datasetid=source.datasetid if isinstance(source, Declaration) else dataset_id(source),
            mapping=mappings.get(one),
        )
        for one, source in sources.items()
    )
