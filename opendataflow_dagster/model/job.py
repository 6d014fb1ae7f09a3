"""A Job: what it consumes, what it produces, how its chunks map to input chunks, and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import TypeAlias

from .errors import InvalidDefinition
from .ids import DataId, DatasetId, JobId, data_id, dataset_id, job_id
from .partitions import TIME_KINDS, TimePartitions

#: Which chunks of an input DataSet does this chunk need?
MappingFunction: TypeAlias = Callable[[DataId], Iterable[str]]


class ChunkMapping:
    """How an output chunk maps to the chunks of one input. There are three kinds, and `listed` covers the rest."""

    kind: str = "equal"

    def __repr__(self) -> str:
        return f"the mapping {self.kind}"


class EqualChunk(ChunkMapping):
    """The input chunk with the same dataid."""


class AllChunks(ChunkMapping):
    """Every chunk that the input has."""

    kind = "all"


class ListedChunks(ChunkMapping):
    """The chunks that a function of the dataid gives; they are listed in the ledger when a chunk is planned."""

    kind = "listed"

    def __init__(self, function: MappingFunction) -> None:
        self.function = function

    def of(self, dataid: DataId) -> tuple[DataId, ...]:
        return tuple(dict.fromkeys(data_id(one) for one in self.function(dataid)))


class ChunksWithin(ListedChunks):
    """The input chunks that begin within the output chunk's time."""

    def __init__(self, output: TimePartitions, input_partitions: TimePartitions) -> None:
        lengths = TIME_KINDS.index(output.kind), TIME_KINDS.index(input_partitions.kind)
        if lengths[0] < lengths[1]:
            raise InvalidDefinition(
                f"within({output.kind}, {input_partitions.kind}): the input's chunks are longer than the output's; "
                f"give the output's partitions first, then the input's"
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


#: A lease or a delay beyond this is a mistake, and soon no time that Postgres could hold.
LONGEST = timedelta(days=366)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    lease: timedelta = timedelta(minutes=10)
    #: How often a chunk is tried by itself before a person must look.
    max_attempts: int = 3
    retry_delay: timedelta = timedelta(0)
    #: A regular expression over the failure's reason; None: only a crash is retried.
    retry_on: str | None = None
    #: Strictly one chunk after the other; a failed one holds back the later ones.
    ordered: bool = False
    #: Resubmit a chunk by itself when one of its inputs was published anew.
    cascade: bool = False
    #: A day of the DataSet `today` that was missed is run later; otherwise only a resubmitted one is.
    catch_up: bool = False

    def __post_init__(self) -> None:
        if self.lease <= timedelta(0):
            raise InvalidDefinition(f"a lease of {self.lease} cannot be held; make it longer than nothing")
        if self.lease > LONGEST:
            raise InvalidDefinition(f"a lease of {self.lease} holds for ever; make it at most {LONGEST.days} days")
        if not 1 <= self.max_attempts <= 1_000_000:
            raise InvalidDefinition(f"max_attempts is {self.max_attempts}; let it be 1 to 1,000,000")
        if self.retry_delay < timedelta(0):
            raise InvalidDefinition(f"a retry_delay of {self.retry_delay} lies in the past; make it positive")
        if self.retry_delay > LONGEST:
            raise InvalidDefinition(
                f"a retry_delay of {self.retry_delay} is never over; make it at most {LONGEST.days} days"
            )


#: The names of all that a policy says.
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
        names = [*(one.datasetid for one in self.inputs), *self.outputs]
        for name in names:
            dataset_id(name)
        if not self.outputs:
            raise InvalidDefinition(f"job {self.jobid} has no OUT DataSet; a job produces at least one")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidDefinition(f"job {self.jobid} uses {', '.join(twice)} twice; name each DataSet once")
        for variable in self.environment:
            if variable in ("IN", "OUT") or not variable:
                raise InvalidDefinition(
                    f"job {self.jobid} has an environment item named {variable!r}; choose another name"
                )

    def input_chunks(self, dataid: DataId) -> dict[DatasetId, tuple[DataId, ...]]:
        """What must be listed in the ledger for a chunk of this Job."""
        return {one.datasetid: one.mapping.of(dataid) for one in self.inputs if isinstance(one.mapping, ListedChunks)}
