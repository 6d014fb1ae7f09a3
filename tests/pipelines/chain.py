"""Three chained DataSets of 121 days, for tests with a real daemon: raw -> tidy -> summary.

A file named like a day in the folder ODF_TEST_BAD makes that day of raw fail, until it is removed. It waits where
hold.py says so: at `compute` in the author's function, at `write` in Spark.
"""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import DataFrame

from opendataflow_dagster import ChunkContext, between, build_definitions, daily, dataset, row_count
from tests.pipelines.hold import wait_at, wait_in_write

DAYS = daily("2024-01-01", "2024-04-30")


@dataset(partitions=DAYS, checks=[row_count(minimum=1), between("id", 0, 8, severity="warn")])
def raw(context: ChunkContext) -> DataFrame:
    if Path(os.environ["ODF_TEST_BAD"], context.dataid).exists():
        raise ValueError("the source sent a word where a number should be")
    wait_at("compute", context.dataid)
    rows = context.spark.range(10).selectExpr("id", f"'{context.dataid}' as day", "id % 3 as kind")
    return wait_in_write(rows, context.dataid, last=9)


@dataset(partitions=DAYS, checks=[row_count(minimum=1)])
def tidy(raw: DataFrame) -> DataFrame:
    return raw.where("id > 0")


@dataset(partitions=DAYS)
def summary(tidy: DataFrame) -> DataFrame:
    return tidy.groupBy("day", "kind").count()


defs = build_definitions([raw, tidy, summary])
