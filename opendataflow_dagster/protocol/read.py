"""read: the rows of a claim's inputs, through the manifests that it pinned and never through a bare path."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from typing import TYPE_CHECKING

from ..ledger.chunks import ready_versions
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import InvalidInput, InvalidManifest
from ..model.ids import ChunkKey, DataId, DatasetId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read(
    spark: SparkSession,
    claim: Claim,
    datasetid: DatasetId,
    *,
    schema: StructType | None = None,
    skipped: Collection[ChunkKey] = (),
    read_foreign: Callable[[SparkSession, DataId], DataFrame] | None = None,
) -> DataFrame:
    """All chunks of this input DataSet as one frame; SKIPPED ones have no rows.

    `read_foreign` reads the chunks without a manifest. `schema` gives the columns where there is no chunk at all.
    """
    from ..warehouse import parquet  # loads Spark, which not every program that imports the engine needs

    manifests = [manifest for manifest in claim.manifests if manifest.datasetid == datasetid]
    foreign = [
        version
        for version in claim.inputs
        if version.datasetid == datasetid and version.manifest_id is None and version.chunk not in skipped
    ]
    if not foreign and not manifests and schema is None:
        raise InvalidInput(
            f"{claim.jobid}/{claim.dataid} has no chunk of {datasetid} to read (SKIPPED, or it needs none), "
            f"and its columns are unknown; declare the schema of {datasetid}"
        )
    if not foreign:
        return parquet.read(spark, manifests, None if manifests else schema)
    if read_foreign is None:
        raise InvalidManifest(
            f"{foreign[0]} was made READY without a manifest, so its files are unknown; announce it with one, "
            f"or declare how to read it: external_dataset({datasetid!r}, read=...)"
        )
    frames = [read_foreign(spark, version.dataid) for version in foreign]
    if manifests:
        frames.append(parquet.read(spark, manifests))
    return reduce(lambda whole, part: whole.unionByName(part), frames)


def skipped_inputs(ledger: Ledger, claim: Claim) -> frozenset[ChunkKey]:
    """The inputs that were SKIPPED when they were claimed: they have no version and are not READY."""
    without_version = [version.chunk for version in claim.inputs if version.manifest_id is None]
    if not without_version:
        return frozenset()
    with ledger.statement() as statement:
        return frozenset(without_version) - ready_versions(statement, without_version).keys()
