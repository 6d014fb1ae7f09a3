"""What a Python or SQL source gets of the chunk that it makes: its input rows and its context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from logging import Logger
from typing import TYPE_CHECKING

from ..ledger.chunks import ready_versions
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import InvalidInput, InvalidManifest
from ..model.ids import ChunkKey, DataId, DatasetId
from ..model.verdict import InputVersion
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


def skipped_inputs(ledger: Ledger, claim: Claim) -> frozenset[ChunkKey]:
    """The inputs that were SKIPPED when the chunk was claimed: they have no version, and they are not READY."""
    without_version = [pinned.chunk for pinned in claim.inputs if pinned.manifest_id is None]
    if not without_version:
        return frozenset()
    with ledger.statement() as statement:
        return frozenset(without_version) - ready_versions(statement, without_version).keys()


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
        """All chunks of this input that the claim pinned, as one DataFrame. SKIPPED chunks have no rows."""
        from ..warehouse import parquet

        session, claim = spark or self.spark, self.claim
        (source,) = [declared.datasetid for declared in self.declaration.inputs if declared.parameter == parameter]
        manifests = [manifest for manifest in claim.manifests if manifest.datasetid == source]
        foreign = [
            pinned
            for pinned in claim.inputs
            if pinned.datasetid == source and pinned.manifest_id is None and pinned.chunk not in self.skipped
        ]
        if not foreign and not manifests and source not in self.schemas:
            raise InvalidInput(
                f"{claim.jobid}/{claim.dataid} has no chunk of {source} to read (SKIPPED, or none needed), "
                f"and the columns of {source} are unknown; declare the schema of {source}"
            )
        if not foreign:
            return parquet.read(session, manifests, None if manifests else self.schemas[source])
        if (read := self.foreign.get(source)) is None:
            raise InvalidManifest(
                f"{foreign[0]} is READY without a manifest, so its files are unknown; announce it with a manifest, "
                f"or declare how to read it: external_dataset({source!r}, read=...)"
            )
        frames = [read(session, pinned.dataid) for pinned in foreign]
        if manifests:
            frames.append(parquet.read(session, manifests))
        return reduce(lambda left, right: left.unionByName(right), frames)
