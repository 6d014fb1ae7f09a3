"""Compares the rows of two large versions on Spark, for `odf diff`.

python -m opendataflow_dagster.engine.version_diff REQUEST RESULT.JSON
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..insight.diff import Comparison, prepare
from ..ledger.database import Ledger
from ..ledger.settings import database_url
from ..model.diff import DiffRequest, RowDiff
from ..model.errors import OpenDataFlowError
from ..model.ids import ChunkKey
from ..warehouse import parquet, spark_diff
from ..warehouse.failures import cause
from ..warehouse.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compare_on_spark(spark: SparkSession, comparison: Comparison) -> RowDiff | None:
    """None: the rows cannot be compared."""
    if comparison.pairing is None:
        return None
    sides = (comparison.diff.old.location, comparison.old_files), (comparison.diff.new.location, comparison.new_files)
    old, new = (parquet.read_files(spark, *side) if side[1] else None for side in sides)
    if old is None or new is None:
        whole = old if old is not None else new
        if whole is None:
            return None
        old, new = (frame if frame is not None else whole.limit(0) for frame in (old, new))
    return spark_diff.compare(old, new, comparison.pairing, comparison.examples)


def main(request: str, result: str) -> int:
    given = json.loads(request)
    try:
        with Ledger(database_url()) as ledger:
            comparison = prepare(ledger, DiffRequest(**{**given, "chunk": ChunkKey(**given["chunk"])}))
        compared = compare_on_spark(session(), comparison)
    except OpenDataFlowError as error:
        sys.stderr.write(f"\n{error}\n")
        return error.exit_code
    except Exception as error:  # of Spark
        sys.stderr.write(f"\nthe versions could not be compared: {cause(error)}\n")
        return OpenDataFlowError.exit_code
    Path(result).write_text(json.dumps(asdict(compared) if compared else None), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
