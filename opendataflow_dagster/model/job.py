"""A Job: its input and output DataSets, how its chunks map to input chunks, and its policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import TypeAlias

from .errors import InvalidDefinition
from .ids import DataId, DatasetId, JobId, data_id, dataset_id, job_id
from .partitions import TIME_KINDS, TimePartitions
from .text import brief

#: The chunks of an input DataSet that an output chunk needs.
MappingFunction: TypeAlias = Callable[[DataId], Iterable[str]]


class ChunkMapping:
    """How an output chunk maps to the chunks of one input."""

    kind: str = "equal"

    def __repr__(self) -> str:
        return f"the mapping {self.kind}"


class EqualChunk(ChunkMapping):
    """The input chunk with the same dataid."""


class AllChunks(ChunkMapping):
    """Every chunk that the input has."""

    kind = "all"


class ListedChunks(ChunkMapping):
    """The chunks that a function of the dataid returns; the ledger lists them when a chunk is planned."""

    kind = "listed"

    def __init__(self, function: MappingFunction) -> None:
        self.function = function

    def of(self, dataid: DataId) -> tuple[DataId, ...]:
        return tuple(dict.fromkeys(data_id(needed) for needed in self.function(dataid)))


class ChunksWithin(ListedChunks):
    """See `within`."""

    def __init__(self, output: TimePartitions, input_partitions: TimePartitions) -> None:
        lengths = TIME_KINDS.index(output.kind), TIME_KINDS.index(input_partitions.kind)
        if lengths[0] < lengths[1]:
            raise InvalidDefinition(
                f"within({output.kind}, {input_partitions.kind}): the input's chunks are longer than the output's; "
                f"pass the output's partitions first, then the input's"
            )
        self.output = output
        self.input_partitions = input_partitions

        def chunks(dataid: DataId) -> Iterable[str]:
            return input_partitions.between(output.time_of(dataid), output.end_of(dataid))

        super().__init__(chunks)


def within(output: TimePartitions, input_partitions: TimePartitions) -> ChunksWithin:
    """The input chunks that begin within the output chunk's time: the 24 hours of a day, the days of a month."""
    return ChunksWithin(output, input_partitions)


EQUAL = EqualChunk()
ALL = AllChunks()


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    datasetid: DatasetId
    mapping: ChunkMapping = EQUAL


#: A longer lease or delay is a mistake.
LONGEST = timedelta(days=366)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The defaults of every Job are here and nowhere else in Python; the schema has the same."""

    lease: timedelta = timedelta(minutes=10)
    #: How many times a chunk is tried before it needs a person.
    max_attempts: int = 3
    retry_delay: timedelta = timedelta(0)
    #: Retry failures whose reason matches this regular expression; None: only crashes.
    retry_on: str | None = None
    #: Strictly one chunk after another; a failed one blocks the later ones.
    ordered: bool = False
    #: The older way to say `on_new_input="rebuild"`, for all outputs.
    cascade: bool = False
    #: Run missed days of the DataSet `today` later; otherwise only resubmitted ones run.
    catch_up: bool = False

    def __post_init__(self) -> None:
        if self.lease <= timedelta(0):
            raise InvalidDefinition(f"a lease of {self.lease} expires at once; make it positive")
        if self.lease > LONGEST:
            raise InvalidDefinition(f"a lease of {self.lease} is too long; make it at most {LONGEST.days} days")
        if not 1 <= self.max_attempts <= 1_000_000:
            raise InvalidDefinition(f"max_attempts is {brief(self.max_attempts)}; use 1 to 1,000,000")
        if self.retry_delay < timedelta(0):
            raise InvalidDefinition(f"a retry_delay of {self.retry_delay} is negative; use 0 or more")
        if self.retry_delay > LONGEST:
            raise InvalidDefinition(
                f"a retry_delay of {self.retry_delay} is too long; make it at most {LONGEST.days} days"
            )


#: The names of all settings of a policy.
POLICY = tuple(field.name for field in fields(Policy))


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    jobid: JobId
    inputs: tuple[Input, ...] = ()
    outputs: tuple[DatasetId, ...]
    #: A value of None unsets the variable.
    environment: Mapping[str, str | None] = field(default_factory=dict)
    policy: Policy = Policy()

    def __post_init__(self) -> None:
        job_id(self.jobid)
        names = [*(source.datasetid for source in self.inputs), *self.outputs]
        for name in names:
            dataset_id(name)
        if not self.outputs:
            raise InvalidDefinition(f"job {self.jobid} has no OUT DataSet; declare at least one")
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidDefinition(f"job {self.jobid} uses {', '.join(repeated)} twice; name each DataSet once")
        for variable in self.environment:
            if variable in ("IN", "OUT") or not variable:
                raise InvalidDefinition(
                    f"job {self.jobid} has an environment variable named {variable!r}; choose another name"
                )

    def input_chunks(self, dataid: DataId) -> dict[DatasetId, tuple[DataId, ...]]:
        """The input chunks that the ledger lists for a chunk of this Job."""
        return {
            source.datasetid: source.mapping.of(dataid)
            for source in self.inputs
            if isinstance(source.mapping, ListedChunks)
        }
