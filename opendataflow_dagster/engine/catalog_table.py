"""The table for outside readers: a run lets it read what it has published, `odf table refresh` makes it anew.

It is derived from the ledger, so whatever goes wrong with it fails no chunk.

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
class Refreshed:
    table: str
    chunks: int


def refresh_table(
    ledger: Ledger, spark: SparkSession, datasetid: DatasetId, schema: StructType | None = None
) -> Refreshed:
    """Make the table anew from all current versions. What was made READY without a version is not in it."""
    with ledger.statement() as statement:
        manifests = current_versions(statement, datasetid)
    return Refreshed(table=catalog.refresh(spark, datasetid, manifests, schema), chunks=len(manifests))


def follow(
    ledger: Ledger, spark: SparkSession, declaration: Declaration, dataids: Sequence[DataId], log: Logger
) -> None:
    """Let the table read the current versions of these chunks."""
    try:
        _follow(ledger, spark, declaration, dataids)
    except Exception as error:  # Spark's, the catalog's or the database's: the chunks are published all the same
        log.warning(
            f"the table of {declaration.datasetid} does not show this run ({cause(error)}); "
            f"make it anew: odf table refresh {declaration.datasetid}"
        )


def _follow(ledger: Ledger, spark: SparkSession, declaration: Declaration, dataids: Sequence[DataId]) -> None:
    keys = [ChunkKey(datasetid=declaration.datasetid, dataid=one) for one in dataids]
    shown: dict[DataId, ManifestId] = {}
    # Until nothing is new: another run may have published, and shown it, between our look and our change.
    while True:
        with ledger.statement() as statement:
            found = [one for one in ready_versions(statement, keys).values() if one is not None]
        if not (news := [one for one in found if shown.get(one.dataid) != one.manifest_id]):
            return
        if catalog.fits(spark, declaration.datasetid, news):
            catalog.point(spark, declaration.datasetid, news)
        else:
            refresh_table(ledger, spark, declaration.datasetid, declaration.schema)
        shown |= {one.dataid: one.manifest_id for one in news}


def main(datasetid: str, result: str) -> int:
    try:
        with Ledger(database_url()) as ledger:
            done = refresh_table(ledger, session(), dataset_id(datasetid))
    except OpenDataFlowError as error:
        sys.stderr.write(f"\n{error}\n")
        return error.exit_code
    except Exception as error:  # Spark's or the catalog's
        sys.stderr.write(f"\nthe table of {datasetid} could not be made: {cause(error)}\n")
        return OpenDataFlowError.exit_code
    Path(result).write_text(json.dumps(asdict(done)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
