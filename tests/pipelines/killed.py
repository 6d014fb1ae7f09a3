"""raw -> tidy of ten days with short leases, for tests that kill.

While there is a file named like a day in the folder ODF_TEST_HOLD, the work on that day of raw waits.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame

from opendataflow_dagster import ChunkContext, Policy, build_definitions, daily, dataset

DAYS = daily("2024-01-01", "2024-01-10")
POLICY = Policy(lease=timedelta(seconds=20), max_attempts=50)


@dataset(partitions=DAYS, policy=POLICY)
def raw(context: ChunkContext) -> DataFrame:
    while Path(os.environ["ODF_TEST_HOLD"], context.dataid).exists():
        time.sleep(0.05)
    return context.spark.range(100).selectExpr("id", f"'{context.dataid}' as day", "id % 3 as kind")


@dataset(partitions=DAYS, policy=POLICY)
def tidy(raw: DataFrame) -> DataFrame:
    return raw.groupBy("day", "kind").count()


defs = build_definitions([raw, tidy])
