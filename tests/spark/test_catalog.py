"""The derived table: outside readers get exactly the current versions through SQL."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from opendataflow_dagster import ChunkContext, daily, dataset
from opendataflow_dagster.model.errors import InvalidDefinition, InvalidInput
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import Manifest
from opendataflow_dagster.warehouse.catalog import point, refresh, table_name
from tests.dagster_project import Project
from tests.operator import Odf
from tests.warehouse import rows, staged, version


def made(spark: SparkSession, root: Path, sql: str, dataid: str, datasetid: str) -> Manifest:
    return version(staged(spark.sql(sql), root, dataid), dataid, datasetid=datasetid)


def test_sql_reads_exactly_the_current_versions(spark: SparkSession, tmp_path: Path) -> None:
    flights = DatasetId("flights")
    old = made(spark, tmp_path, "select 1 as a, named_struct('x y', 1) as `größe`", "d:'1'", flights)
    new = made(spark, tmp_path, "select 2 as a, named_struct('x y', 2) as `größe`", "d:'1'", flights)
    two = made(spark, tmp_path, "select 3 as a, named_struct('x y', 3) as `größe`, 'b' as b", "d2", flights)
    assert refresh(spark, flights, [old, two]) == "flights"
    found = spark.sql("select a, b, `größe`.`x y`, dataid from flights")
    assert rows(found) == [(1, None, 1, "d:'1'"), (3, "b", 3, "d2")]
    point(spark, flights, [new, made(spark, tmp_path, "select 4 as a", "d4", flights)])
    assert rows(spark.sql("select a, dataid from flights")) == [(2, "d:'1'"), (3, "d2"), (4, "d4")]
    assert rows(spark.sql("select a from flights where dataid = 'd2'")) == [(3,)]
    refresh(spark, flights, [two])
    assert rows(spark.sql("select a, dataid from flights")) == [(3, "d2")]
    spark.sql("drop table flights")
    assert Path(two.location, two.files[0].path).is_file()  # the table does not own the files


def test_a_dataset_without_versions_is_an_empty_table(spark: SparkSession) -> None:
    declared = StructType([StructField("a", LongType())])
    name = refresh(spark, DatasetId("nothing yet"), [], declared)
    assert rows(spark.sql(f"select a, dataid from {name}")) == []
    with pytest.raises(InvalidInput, match="DataSet nothing has no versions and no schema"):
        refresh(spark, DatasetId("nothing"), [])
    with pytest.raises(InvalidInput, match="DataSet nothing has no table nothing in this catalog"):
        point(spark, DatasetId("nothing"), [])


def test_names_that_a_catalog_does_not_allow_are_mapped_one_to_one() -> None:
    assert table_name(DatasetId("flights_2024")) == "flights_2024"
    odd = [
        DatasetId(name) for name in ("a-b", "a.b", "a b", "größe", "€", "1a", "x" * 200, "x" * 199, "`; drop table t")
    ]
    names = [table_name(name) for name in odd]
    assert len(set(names)) == len(odd)
    assert all(name.replace("_", "").isalnum() and name.isascii() and len(name) <= 128 for name in names)


def test_two_datasets_never_share_a_table(spark: SparkSession, tmp_path: Path) -> None:
    refresh(spark, DatasetId("sales"), [made(spark, tmp_path, "select 1 as a", "d", "sales")])
    with pytest.raises(InvalidDefinition, match="table sales belongs to DataSet sales; rename DataSet Sales"):
        refresh(spark, DatasetId("Sales"), [made(spark, tmp_path, "select 2 as a", "d", "Sales")])
    assert rows(spark.sql("select a from sales")) == [(1,)]


def test_a_repeated_chunk_or_one_of_another_dataset_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    manifest = made(spark, tmp_path, "select 1 as a", "d", "set")
    for manifests in ([manifest, manifest], [version(staged(spark.range(1), tmp_path), datasetid="other")]):
        with pytest.raises(InvalidInput, match=r"set/d is repeated|other/d is not a chunk of set"):
            refresh(spark, DatasetId("set"), manifests)


def test_the_partition_column_never_has_the_name_of_a_data_column(spark: SparkSession, tmp_path: Path) -> None:
    name = refresh(spark, DatasetId("select"), [made(spark, tmp_path, "select 'mine' as DataId", "d", "select")])
    assert rows(spark.sql(f"select * from `{name}`")) == [("mine", "d")]  # a word of SQL itself, too
    assert spark.table(f"`{name}`").columns == ["DataId", "chunk_dataid"]


# --- from the ledger to the table

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
    assert "make it anew: odf table refresh taken" in capfd.readouterr().err


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
