"""The reference pipeline on real data: a day of flights out of New York, through all its DataSets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from assets import all_datasets
from assets.source import days_of
from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.testing import Pipeline, pipeline
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
        name: sum(row["carrier"] == name for row in source) for name in {row["carrier"] for row in source}
    }
    assert sum(row["cancelled"] for row in stats.values()) == sum(flight["dep_time"] == "NA" for flight in source) > 400
    assert sum(cast(int, row["in_rough_weather"]) for row in stats.values()) > 400


@pytest.fixture
def flow(url: str, tmp_path: Path, spark: SparkSession) -> Iterator[Pipeline]:
    with pipeline(*all_datasets, url=url, root=tmp_path) as made:
        yield made


def given_flights(flow: Pipeline, **changes: str) -> None:
    """The first flights of the day; one of them is changed."""
    header, days = days_of("flights")
    first, *rest = [dict(zip(header, row, strict=True)) for row in days[DAY][:5]]
    rows = [tuple(row[name] for name in header) for row in (first | changes, *rest)]
    flow.given(f"raw_flights/{DAY}", rows, ", ".join(f"{name} string" for name in header))


def test_a_flight_that_cannot_be_fails_its_day_with_figures_and_the_repaired_day_is_made(flow: Pipeline) -> None:
    given_flights(flow, dep_delay="99999")
    assert "1 of 5 rows fails between(dep_delay, -120, 2000), e.g. 99999" in flow.refusal(f"clean_flights/{DAY}")
    flow.make(f"raw_weather/{DAY}")
    assert "DATA_NOT_READY" in flow.refusal(f"carrier_stats/{DAY}")

    given_flights(flow)
    flow.make(f"clean_flights/{DAY}", f"carrier_stats/{DAY}")

    flow.assert_status({f"{name}/{DAY}": "READY" for name in ("raw_flights", "clean_flights", "carrier_stats")})
    assert flow.frame(f"carrier_stats/{DAY}").agg({"flights": "sum"}).first() == (5,)


def test_a_number_that_is_none_fails_the_day_and_never_becomes_null(flow: Pipeline) -> None:
    given_flights(flow, distance="far")

    assert "CAST_INVALID_INPUT" in flow.refusal(f"clean_flights/{DAY}")
    flow.assert_status({f"clean_flights/{DAY}": "FAILED"})
