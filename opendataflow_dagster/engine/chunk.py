"""What an author's function gets of the chunk it makes: the rows of its inputs, and, if it asks, the context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import Logger
from typing import TYPE_CHECKING

from ..model.claim import Claim
from ..model.errors import InvalidInput
from ..model.ids import ChunkKey, DataId, DatasetId
from ..model.verdict import InputVersion
from ..protocol.read import read
from .declaration import Declaration, ReadForeign

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, kw_only=True)
class ChunkContext:
    """The chunk that is being made."""

    datasetid: DatasetId
    dataid: DataId
    claim: Claim
    spark: SparkSession
    log: Logger

    @property
    def inputs(self) -> tuple[InputVersion, ...]:
        """The chunks it is made from, each with the version that the claim has pinned."""
        return self.claim.inputs


def frame_of(made: object, datasetid: DatasetId) -> DataFrame:
    """What the author's function returned, if it is what a function of a DataSet returns."""
    from pyspark.sql import DataFrame

    if isinstance(made, DataFrame):
        return made
    kind = "nothing" if made is None else type(made).__name__
    next_step = "return the DataFrame that you made"
    if kind in ("Output", "MaterializeResult", "AssetMaterialization"):
        next_step = "return the DataFrame itself; the framework stores it and tells Dagster"
    raise InvalidInput(f"the function of DataSet {datasetid} returned {kind}, not a Spark DataFrame; {next_step}")


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The inputs of one claim. They are read through the manifests that it has pinned, never through a bare path."""

    claim: Claim
    declaration: Declaration
    spark: SparkSession
    #: How to read what has no manifest.
    foreign: Mapping[DatasetId, ReadForeign]
    #: The input chunks that were deliberately not produced, and the columns of DataSets that declare them.
    skipped: frozenset[ChunkKey] = frozenset()
    schemas: Mapping[DatasetId, StructType] = field(default_factory=dict)

    def frame(self, parameter: str, spark: SparkSession | None = None) -> DataFrame:
        """All chunks of this input that the claim has, as one DataFrame; SKIPPED ones have no rows."""
        (source,) = [one.datasetid for one in self.declaration.inputs if one.parameter == parameter]
        return read(
            spark or self.spark,
            self.claim,
            source,
            schema=self.schemas.get(source),
            skipped=self.skipped,
            read_foreign=self.foreign.get(source),
        )
