"""Reading published chunks by name, as consumers that are not DataSets do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ledger.chunks import ready_versions
from ..ledger.database import Ledger
from ..model.errors import InvalidInput, InvalidManifest
from ..model.ids import ChunkKey, DataId, DatasetId
from ..model.text import listing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN = 10


def read_chunks(ledger: Ledger, spark: SparkSession, datasetid: DatasetId, dataids: Sequence[DataId]) -> DataFrame:
    """The current versions of these chunks as one DataFrame. All of them must be READY and have a manifest."""
    from ..warehouse import parquet

    keys = [ChunkKey(datasetid=datasetid, dataid=dataid) for dataid in dataids]
    with ledger.statement() as statement:
        ready = ready_versions(statement, keys)
    if missing := [str(key) for key in keys if key not in ready]:
        raise InvalidInput(f"not READY: {listing(missing, _SHOWN)}; make them first")
    if foreign := [str(key) for key, manifest in ready.items() if manifest is None]:
        raise InvalidManifest(f"READY without a manifest: {listing(foreign, _SHOWN)}; announce them with one")
    return parquet.read(spark, [manifest for key in keys if (manifest := ready[key]) is not None])
