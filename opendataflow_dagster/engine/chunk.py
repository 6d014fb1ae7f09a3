"""What a Python or SQL source gets of the chunk that it makes: its input rows and its context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import Logger
from typing import TYPE_CHECKING

from ..model.claim import Claim
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
        """The input chunks, each with the version that the claim pinned."""
        return self.claim.inputs


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The inputs of one claim, read through the manifests that it pinned and never through a bare path."""

    claim: Claim
    declaration: Declaration
    spark: SparkSession
    #: How to read chunks that have no manifest.
    foreign: Mapping[DatasetId, ReadForeign]
    #: Input chunks that were deliberately not produced, and the declared schemas of DataSets.
    skipped: frozenset[ChunkKey] = frozenset()
    schemas: Mapping[DatasetId, StructType] = field(default_factory=dict)

    def frame(self, parameter: str, spark: SparkSession | None = None) -> DataFrame:
        """All chunks of this input that the claim has, as one DataFrame; SKIPPED ones have no rows."""
        (source,) = [declared.datasetid for declared in self.declaration.inputs if declared.parameter == parameter]
        return read(
            spark or self.spark,
            self.claim,
            source,
            schema=self.schemas.get(source),
            skipped=self.skipped,
            read_foreign=self.foreign.get(source),
        )
