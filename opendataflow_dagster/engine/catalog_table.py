"""The Spark catalog table for outside readers. Runs update it, and `odf table refresh` rebuilds it.

It is derived from the ledger, so a failed update fails no chunk.

python -m opendataflow_dagster.engine.catalog_table DATASET RESULT.JSON
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from logging import Logger
from pathlib import Path
from typing import TYPE_CHECKING

from ..ledger.chunks import ready_versions
from ..ledger.database import Ledger
from ..ledger.reports import current_versions
from ..ledger.settings import database_url
from ..model.errors import OpenDataFlowError
from ..model.ids import ChunkKey, DataId, DatasetId, ManifestId, dataset_id
from ..warehouse import catalog
from ..warehouse.failures import cause
from ..warehouse.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from ..engine.declaration import Declaration


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshedTable:
    table: str
    chunks: int


def refresh_table(
    ledger: Ledger, spark: SparkSession, datasetid: DatasetId, schema: StructType | None = None
) -> RefreshedTable:
    """Rebuild the table from all current versions. Chunks that are READY without a version are not in it."""
    with ledger.statement() as statement:
        manifests = current_versions(statement, datasetid)
    return RefreshedTable(table=catalog.refresh(spark, datasetid, manifests, schema), chunks=len(manifests))


def update_table(
    ledger: Ledger, spark: SparkSession, declaration: Declaration, dataids: Sequence[DataId], log: Logger
) -> None:
    """Point the table to the current versions of these chunks."""
    try:
        _update(ledger, spark, declaration, dataids)
    except Exception as error:  # of Spark, the catalog or the database; the chunks are published anyway
        log.warning(
            f"the table of {declaration.datasetid} was not updated by this run ({cause(error)}); "
            f"rebuild it: odf table refresh {declaration.datasetid}"
        )


def _update(ledger: Ledger, spark: SparkSession, declaration: Declaration, dataids: Sequence[DataId]) -> None:
    keys = [ChunkKey(datasetid=declaration.datasetid, dataid=dataid) for dataid in dataids]
    shown: dict[DataId, ManifestId] = {}
    # Repeat until nothing is new: another run may have published and updated the table between query and update.
    while True:
        with ledger.statement() as statement:
            current = [manifest for manifest in ready_versions(statement, keys).values() if manifest is not None]
        if not (news := [manifest for manifest in current if shown.get(manifest.dataid) != manifest.manifest_id]):
            return
        if catalog.fits(spark, declaration.datasetid, news):
            catalog.point(spark, declaration.datasetid, news)
        else:
            refresh_table(ledger, spark, declaration.datasetid, declaration.schema)
        shown |= {manifest.dataid: manifest.manifest_id for manifest in news}


def main(datasetid: str, result: str) -> int:
    try:
        with Ledger(database_url()) as ledger:
            refreshed = refresh_table(ledger, session(), dataset_id(datasetid))
    except OpenDataFlowError as error:
        sys.stderr.write(f"\n{error}\n")
        return error.exit_code
    except Exception as error:  # of Spark or the catalog
        sys.stderr.write(f"\nthe table of {datasetid} could not be rebuilt: {cause(error)}\n")
        return OpenDataFlowError.exit_code
    Path(result).write_text(json.dumps(asdict(refreshed)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
