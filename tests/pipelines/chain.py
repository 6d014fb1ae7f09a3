"""Three chained DataSets of 91 days, for tests with a real daemon: raw -> tidy -> summary.

A file named like a day in the folder ODF_TEST_BAD makes that day of raw fail, until it is removed.
"""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import DataFrame

from opendataflow_dagster import ChunkContext, build_definitions, daily, dataset, row_count

DAYS = daily("2024-01-01", "2024-03-31")


@dataset(partitions=DAYS)
def raw(context: ChunkContext) -> DataFrame:
    if Path(os.environ["ODF_TEST_BAD"], context.dataid).exists():
        raise ValueError("the source sent a word where a number should be")
    return context.spark.range(10).selectExpr("id", f"'{context.dataid}' as day", "id % 3 as kind")


@dataset(partitions=DAYS, checks=[row_count(minimum=1)])
def tidy(raw: DataFrame) -> DataFrame:
    return raw.where("id > 0")


@dataset(partitions=DAYS)
def summary(tidy: DataFrame) -> DataFrame:
    return tidy.groupBy("day", "kind").count()


defs = build_definitions([raw, tidy, summary])
