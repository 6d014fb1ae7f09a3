"""What an author declares: a DataSet with its options, and the source that makes its chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..model.check import Check, refuse_repeated
from ..model.errors import InvalidDefinition
from ..model.ids import DataId, DatasetId, JobId, dataset_id, job_id
from ..model.job import ChunkMapping, Policy
from ..model.partitions import Partitions
from .options import Options
from .source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: Reads a chunk that has no manifest.
ReadForeign: TypeAlias = "Callable[[SparkSession, DataId], DataFrame]"

_TRANSLATED = ("inputs", "mapping", "job", "checks")


@dataclass(frozen=True, kw_only=True)
class DeclaredInput:
    #: What the source calls it.
    parameter: str
    datasetid: DatasetId
    #: None: not declared; the equal chunk, if both DataSets have partitions of the same kind.
    mapping: ChunkMapping | None = None


@dataclass(frozen=True, kw_only=True)
class Declaration:
    datasetid: DatasetId
    #: The producing Job; named like the DataSet unless the author gives a name.
    jobid: JobId
    source: Source
    inputs: tuple[DeclaredInput, ...] = ()
    #: The author's function, so that a test can call the declaration.
    function: Callable[..., object] | None = None
    read: ReadForeign | None = None
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
    on_new_input: Literal["rebuild", "mark"] = "mark"
    repeats: bool = False
    table: bool = False
    code_version: str | None = None
    expected_by: str | None = None
    fresh_within: timedelta | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: object, **named: object) -> object:
        if self.function is None:
            raise InvalidDefinition(f"DataSet {self.datasetid} is not made by a Python function, so it is not callable")
        return self.function(*arguments, **named)

    def current_code(self) -> str | None:
        """The version of the code that makes the next chunk; None: unknown."""
        return self.code_version or self.source.fingerprint()

    @property
    def is_produced(self) -> bool:
        return self.source.is_produced

    def __post_init__(self) -> None:
        if self.is_produced and not re.fullmatch("[A-Za-z0-9_]+", self.datasetid):
            raise InvalidDefinition(
                f"DataSet {self.datasetid!r} cannot be a Dagster asset; use letters, digits and _ only"
            )
        # Dagster derives input names from it.
        if not re.fullmatch("[A-Za-z0-9_.-]+", self.datasetid):
            raise InvalidDefinition(
                f"external DataSet {self.datasetid!r} cannot be a Dagster asset; use letters, digits, _, . and - only"
            )
        if self.is_produced and not re.fullmatch("[A-Za-z0-9_]+", self.jobid):
            raise InvalidDefinition(f"job {self.jobid!r} cannot be a Dagster job; use letters, digits and _ only")
        if not re.fullmatch("[A-Za-z0-9_]+", self.domain or "_"):
            raise InvalidDefinition(
                f"DataSet {self.datasetid}: the domain {self.domain!r} cannot be a Dagster group; "
                f"use letters, digits and _ only"
            )
        if self.chunks_per_run < 1:
            raise InvalidDefinition(
                f"DataSet {self.datasetid}: chunks_per_run is {self.chunks_per_run}; it must be at least 1"
            )
        if self.concurrency is not None and self.concurrency < 1:
            raise InvalidDefinition(
                f"DataSet {self.datasetid}: concurrency is {self.concurrency}; it must be at least 1"
            )
        refuse_repeated(self.checks, f"DataSet {self.datasetid}")
        self.source.validate(self)


def declare(
    name: DatasetId,
    source: Source,
    parameters: Sequence[str],
    options: Options,
    *,
    function: Callable[..., object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Declaration:
    """A DataSet that this project makes. `parameters` are the names by which the source reads its inputs."""
    # The others are those of the declaration, under the same names.
    same: dict[str, Any] = {option: value for option, value in options.items() if option not in _TRANSLATED}
    return Declaration(
        datasetid=name,
        source=source,
        function=function,
        environment=environment or {},
        inputs=_inputs(name, parameters, options.get("inputs", {}), options.get("mapping", {})),
        jobid=job_id(options.get("job") or name),
        checks=tuple(options.get("checks", ())),
        **same,
    )


def _inputs(
    name: str, parameters: Sequence[str], inputs: Mapping[str, str | Declaration], mappings: Mapping[str, ChunkMapping]
) -> tuple[DeclaredInput, ...]:
    given: Mapping[str, Mapping[str, object]] = {"inputs": inputs, "mapping": mappings}
    for option, names in given.items():
        if unknown := sorted(set(names) - set(parameters)):
            raise InvalidDefinition(
                f"DataSet {name}: {option} names {', '.join(unknown)}, which it does not read; "
                f"it reads {', '.join(parameters) or 'nothing'}"
            )
    for parameter, mapping in mappings.items():
        if not isinstance(mapping, ChunkMapping):
            raise InvalidDefinition(
                f"DataSet {name}: the mapping of {parameter} is {mapping!r}; "
                f"give EQUAL, ALL, within(...) or ListedChunks(function)"
            )
    for parameter, source in inputs.items():
        if not isinstance(source, str | Declaration):
            raise InvalidDefinition(
                f"DataSet {name}: the input {parameter} is {source!r}; give the name of a DataSet, or its declaration"
            )
    sources = {parameter: inputs.get(parameter, parameter) for parameter in parameters}
    return tuple(
        DeclaredInput(
            parameter=parameter,
            datasetid=source.datasetid if isinstance(source, Declaration) else dataset_id(source),
            mapping=mappings.get(parameter),
        )
        for parameter, source in sources.items()
    )
