"""Reading published chunks by name, as consumers that are not DataSets do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..ledger.chunks import ready_versions
from ..ledger.database import Ledger
from ..model.errors import InvalidInput, InvalidManifest
from ..model.ids import ChunkKey, DataId, DatasetId

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
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise InvalidInput(f"not READY: {', '.join(missing[:_SHOWN])}{more}; make them first")
    if foreign := [str(key) for key, manifest in ready.items() if manifest is None]:
        raise InvalidManifest(f"READY without a manifest: {', '.join(foreign[:_SHOWN])}; announce them with one")
    return parquet.read(spark, [manifest for key in keys if (manifest := ready[key]) is not None])
