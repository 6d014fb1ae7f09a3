"""The reference pipeline on real data: a day of flights out of New York, through all its DataSets."""

from __future__ import annotations

from typing import cast

from pyspark.sql import SparkSession

from assets import all_datasets
from assets.source import days_of
from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.warehouse import parquet
from tests.dagster_project import Project
from tests.factories import key

DAY = "2013-02-08"  # a snow storm


def test_a_day_of_the_reference_pipeline_has_the_totals_of_its_source(project: Project, spark: SparkSession) -> None:
    project.build(*all_datasets)

    for job in ("raw_flights", "raw_weather", "clean_flights", "carrier_stats"):
        done = project.launch(job, DAY)
        assert done.success, done.said

    header, days = days_of("flights")
    source = [dict(zip(header, row, strict=True)) for row in days[DAY]]
    with project.flow.ledger.statement() as statement:
        manifest = chunks.current_manifest(statement, key(f"carrier_stats/{DAY}"))
    assert manifest is not None
    stats = {row["carrier"]: row for row in parquet.read(spark, [manifest]).collect()}
    assert {name: row["flights"] for name, row in stats.items()} == {
        name: sum(one["carrier"] == name for one in source) for name in {one["carrier"] for one in source}
    }
    assert sum(row["cancelled"] for row in stats.values()) == sum(one["dep_time"] == "NA" for one in source) > 400
    assert sum(cast(int, row["in_rough_weather"]) for row in stats.values()) > 400
