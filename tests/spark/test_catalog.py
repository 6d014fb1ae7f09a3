"""The derived table: outside readers get exactly the current versions through SQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from opendataflow_dagster.model.errors import InvalidDefinition, InvalidInput
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import Manifest
from opendataflow_dagster.warehouse.catalog import point, refresh, table_name
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
