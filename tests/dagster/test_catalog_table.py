"""Runs keep the table of a DataSet for outside readers up to date."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from opendataflow_dagster import ChunkContext, daily, dataset
from tests.dagster_project import Project
from tests.operator import Odf
from tests.warehouse import rows

DAYS = daily("2024-01-01", "2024-01-03")


def test_a_run_points_the_table_at_what_it_published(project: Project, spark: SparkSession) -> None:
    columns = ["id"]

    @dataset(partitions=DAYS, table=True)
    def shown(context: ChunkContext) -> DataFrame:
        return context.spark.range(2).selectExpr(*columns)

    project.build(shown)
    assert project.launch_range("shown", "2024-01-01", "2024-01-02").success
    assert rows(spark.sql("select dataid, id from shown")) == [
        (day, number) for day in ("2024-01-01", "2024-01-02") for number in (0, 1)
    ]
    # A new chunk, and a new version with an extra column.
    assert project.launch("shown", "2024-01-03").success
    columns.append("id * 2 as twice")
    assert project.launch("shown", "2024-01-01").success
    assert rows(spark.sql("select dataid, sum(id), sum(twice) from shown group by dataid")) == [
        ("2024-01-01", 1, 2),
        ("2024-01-02", 1, None),
        ("2024-01-03", 1, None),
    ]


def test_a_table_that_cannot_be_created_fails_no_chunk(
    project: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    @dataset(partitions=DAYS, table=True)
    def taken(context: ChunkContext) -> DataFrame:
        return context.spark.range(2)

    spark.sql(f"create table taken (theirs int) using parquet location '{project.flow.root / 'theirs'}'")
    project.build(taken)

    done = project.launch("taken", "2024-01-01")

    assert done.success
    assert project.flow.status("taken/2024-01-01") == "READY"
    assert spark.table("taken").columns == ["theirs"]
    assert "rebuild it: odf table refresh taken" in capfd.readouterr().err


def test_odf_table_refresh_makes_a_table_that_other_processes_read(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a Hive metastore for this test alone."""

    @dataset(partitions=DAYS)
    def delays(context: ChunkContext) -> DataFrame:
        return context.spark.range(3).selectExpr("id", f"'{context.dataid}' as day")

    project.build(delays)
    assert project.launch_range("delays", "2024-01-01", "2024-01-02").success
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(tmp_path / "hive"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dderby.system.home={tmp_path}",
        "spark.sql.shuffle.partitions": "1",
    }
    monkeypatch.setenv("ODF_SPARK_CONF", json.dumps(conf))
    run = Odf(url=project.flow.url)

    assert "DataSet nowhere is not registered" in run.error("table", "refresh", "nowhere")
    assert run.json("table", "refresh", "delays") == {"table": "delays", "chunks": 2}

    reader = (
        "from opendataflow_dagster.warehouse.session import session;"
        "found = session().sql('select dataid, day, sum(id) as s from delays group by 1, 2 order by 1').collect();"
        "print([tuple(row) for row in found])"
    )
    done = subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str([(day, day, 3) for day in ("2024-01-01", "2024-01-02")])
