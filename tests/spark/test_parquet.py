"""stage and read: each claim writes once, into its own folder, and the manifest describes what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, desc, udf
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from opendataflow_dagster.model.errors import (
    IncompatibleSchema,
    InvalidInput,
    InvalidManifest,
    StageFailed,
)
from opendataflow_dagster.model.ids import ClaimId, DataId, DatasetId
from opendataflow_dagster.model.manifest import File, NewManifest, Written
from opendataflow_dagster.protocol.stage import stage
from opendataflow_dagster.protocol.validate import validate
from opendataflow_dagster.warehouse import parquet
from opendataflow_dagster.warehouse.parquet import read
from opendataflow_dagster.warehouse.placement import misplaced
from opendataflow_dagster.warehouse.schema import schema_hash
from tests.warehouse import claims, rows, staged, version


def _ddl(text: str) -> StructType:
    found = StructType.fromDDL(text)
    assert isinstance(found, StructType)
    return found


def write(frame: DataFrame, root: str, claim_id: ClaimId) -> Written:
    return stage(frame, root=root, datasetid=DatasetId("set"), dataid=DataId("d"), claim_id=claim_id)


def test_the_manifest_describes_what_was_written(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(10, numPartitions=2).withColumn("text", col("id").cast("string"))
    made = staged(frame, tmp_path, "2024-01-01")
    assert made.location.startswith(f"{tmp_path}/2024-01-01/")
    assert misplaced(made.location, made.files, lambda: None) is None
    assert {path.name for path in Path(made.location).glob("*.parquet")} == {file.path for file in made.files}
    assert made.row_count == 10
    assert made.bytes == sum(path.stat().st_size for path in Path(made.location).glob("*.parquet"))
    assert made.schema_hash == schema_hash(frame.schema)
    assert rows(read(spark, [version(made)])) == rows(frame)


def test_a_write_is_one_spark_job(spark: SparkSession, tmp_path: Path) -> None:
    spark.sparkContext.setJobGroup("one write", "")
    try:
        staged(spark.range(10), tmp_path)
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("one write")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    assert len(jobs) == 1


def test_a_claim_writes_once(spark: SparkSession, tmp_path: Path) -> None:
    first = validate(write(spark.range(1), str(tmp_path), ClaimId(7)))
    with pytest.raises(StageFailed, match=r"chunk d \(claim 7\).*the folder exists already"):
        write(spark.range(2), str(tmp_path), ClaimId(7))
    assert rows(read(spark, [version(first)])) == [(0,)]


def test_a_stray_file_is_never_read(spark: SparkSession, tmp_path: Path) -> None:
    made = staged(spark.range(3), tmp_path)
    other = staged(spark.range(100, 200, numPartitions=1), tmp_path)
    stray = Path(other.location, other.files[0].path)
    stray.rename(Path(made.location, "part-stray.parquet"))
    assert rows(read(spark, [version(made)])) == [(0,), (1,), (2,)]


def test_many_versions_are_one_frame(spark: SparkSession, tmp_path: Path) -> None:
    made = [staged(spark.range(n, n + 1), tmp_path, f"d{n}") for n in range(3)]
    assert rows(read(spark, [version(manifest) for manifest in made])) == [(0,), (1,), (2,)]


def test_a_column_added_later_is_null_in_older_versions(spark: SparkSession, tmp_path: Path) -> None:
    old = version(staged(spark.sql("select 1 as a, named_struct('x', 1) as s"), tmp_path))
    new = version(staged(spark.sql("select 2 as a, named_struct('x', 2) as s, 'b' as b"), tmp_path))
    assert rows(read(spark, [old, new]).select("a", "b")) == [(1, None), (2, "b")]
    declared = _ddl("b string, a bigint, s struct<x: int, y: string>")
    assert rows(read(spark, [new, old], declared)) == [("b", 2, (2, None)), (None, 1, (1, None))]
    other = version(staged(spark.sql("select 'text' as a"), tmp_path), "d9")
    with pytest.raises(IncompatibleSchema, match=r"set/d9 version 1.*column a is string, not int"):
        read(spark, [old, other])


def test_announced_versions_without_a_schema_hash_keep_all_columns(spark: SparkSession, tmp_path: Path) -> None:
    queries = ("select 1 as a", "select 2 as a, 'b' as b", "select 3 as a, 'c' as c")
    announced = [
        version(replace(staged(spark.sql(query), tmp_path), schema_hash=None), f"d{number}")
        for number, query in enumerate(queries)
    ]
    assert rows(read(spark, announced)) == [(1, None, None), (2, "b", None), (3, None, "c")]


def test_the_schema_of_files_that_spark_wrote_elsewhere_costs_no_spark_job(spark: SparkSession, tmp_path: Path) -> None:
    announced = [
        version(replace(staged(spark.sql(query), tmp_path), schema_hash=None), f"d{number}")
        for number, query in enumerate(("select 1 as a, 'x' as b", "select 2 as a"))
    ]
    spark.sparkContext.setJobGroup("two reads", "")
    try:
        single, both = read(spark, announced[:1]), read(spark, announced)
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("two reads")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    assert len(jobs) == 0
    assert single.schema == _ddl("a int, b string")
    assert (rows(single), rows(both)) == ([(1, "x")], [(1, "x"), (2, None)])


def test_the_schemas_of_an_announced_versions_files_are_merged_if_spark_is_set_to(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = tmp_path / "theirs"
    spark.sql("select 1 as a").write.parquet(str(location))
    spark.sql("select 2 as a, 'x' as b").write.mode("append").parquet(str(location))
    files = tuple(File(path=path.name, size=path.stat().st_size) for path in sorted(location.glob("*.parquet")))
    theirs = version(NewManifest(location=str(location), files=files[::-1]))
    assert read(spark, [theirs]).schema == spark.read.parquet(str(location)).schema
    spark.conf.set("spark.sql.parquet.mergeSchema", "true")
    try:
        assert rows(read(spark, [theirs])) == [(1, None), (2, "x")]
    finally:
        spark.conf.unset("spark.sql.parquet.mergeSchema")


def test_a_wrong_announced_schema_hash_misleads_no_other_reader(spark: SparkSession, tmp_path: Path) -> None:
    ours = staged(spark.sql("select 1 as a, 'x' as once_only"), tmp_path)
    parquet._known_schemas.pop(ours.schema_hash or "")  # as in another process
    wrong = version(replace(staged(spark.sql("select 2 as b"), tmp_path), schema_hash=ours.schema_hash), "wrong")
    assert rows(read(spark, [wrong])) == [(2,)]
    assert rows(read(spark, [version(ours)])) == [(1, "x")]


def test_files_of_other_programs_are_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    location = tmp_path / "theirs"
    location.mkdir()
    table = pyarrow.table({"a": pyarrow.array([1, None], pyarrow.int16()), "b": ["x", "y"]})
    pyarrow.parquet.write_table(table, location / "theirs.parquet")
    file = File(path="theirs.parquet", size=(location / "theirs.parquet").stat().st_size)
    theirs = version(NewManifest(location=str(location), files=(file,)))
    found = read(spark, [theirs])
    assert found.schema == spark.read.parquet(str(location)).schema == _ddl("a smallint, b string")
    ours = version(staged(spark.sql("select 1s as a, 'z' as c"), tmp_path), "d2")
    assert rows(read(spark, [theirs, ours])) == [(1, "x", None), (1, None, "z"), (None, "y", None)]


def test_no_versions_and_a_schema_are_an_empty_frame(spark: SparkSession) -> None:
    declared = _ddl("a int, b string")
    empty = read(spark, [], declared)
    assert (empty.schema, empty.count()) == (declared, 0)
    with pytest.raises(InvalidInput, match="no versions and no schema"):
        read(spark, [])


def test_a_missing_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    made = staged(spark.range(1), tmp_path)
    Path(made.location, made.files[0].path).unlink()
    with pytest.raises(InvalidManifest, match=made.files[0].path):
        read(spark, [version(made)]).collect()


@pytest.mark.parametrize(
    "empty",
    [
        lambda spark: spark.createDataFrame([], "a int, b map<string, int>"),
        lambda spark: spark.sql("select 1 as a, map('x', 1) as b").where("a < 0"),
        lambda spark: spark.sql("select 1 as a, map('x', 1) as b").limit(0),
    ],
)
def test_a_version_without_rows_is_readable(
    spark: SparkSession, tmp_path: Path, empty: Callable[[SparkSession], DataFrame]
) -> None:
    made = staged(empty(spark), tmp_path)
    assert (made.row_count, made.content_digest, len(made.files)) == (0, None, 1)
    found = spark.read.parquet(made.location)
    assert (found.columns, found.count()) == (["a", "b"], 0)


def test_the_row_count_is_right_after_a_limit_and_a_shuffle(spark: SparkSession, tmp_path: Path) -> None:
    for frame in (
        spark.range(100).limit(7),
        spark.range(100).orderBy(desc("id")).limit(7),
        spark.range(7).repartition(2),
    ):
        made = staged(frame, tmp_path)
        assert made.row_count == read(spark, [version(made)]).count() == 7


def test_the_digest_depends_on_the_rows_and_not_on_their_order(spark: SparkSession, tmp_path: Path) -> None:
    def digest(sql: str) -> str | None:
        return staged(spark.sql(sql), tmp_path).content_digest

    values = "select * from values (1, 'x'), (2, null), (3, 'z') as t(a, b)"
    same = digest(values)
    assert same == digest(f"{values} order by a desc")
    assert same == staged(spark.sql(values).repartition(3), tmp_path).content_digest
    others = [
        digest("select * from values (1, 'x'), (2, null), (3, 'y') as t(a, b)"),
        digest("select * from values (1, 'x'), (2, ''), (3, 'z') as t(a, b)"),
        digest("select * from values (1, 'x'), (2, null), (3, 'z') as t(a, c)"),
        digest(f"{values} union all {values}"),
        digest("select cast(null as int) as a, 1 as b"),
        digest("select 1 as a, cast(null as int) as b"),
        digest("select array('a', 'b') as a, array('c') as b"),
        digest("select array('a') as a, array('b', 'c') as b"),
        digest("select array(cast(null as string)) as a, array('c') as b"),
        digest("select array(timestamp'2024-01-01 00:00:00.000001') as a"),
        digest("select array(timestamp'2024-01-01 00:00:00.000002') as a"),
    ]
    assert len({same, *others}) == 1 + len(others)


def test_equal_maps_have_one_digest(spark: SparkSession, tmp_path: Path) -> None:
    nested = "select array(named_struct('m', map({0}))) as a, map(1, map({0}), 2, null) as b"
    first, reordered, different = (
        staged(spark.sql(nested.format(text)), tmp_path).content_digest
        for text in ("'x', 1, 'y', 2", "'y', 2, 'x', 1", "'y', 1, 'x', 2")
    )
    assert first == reordered != different


def test_every_type_and_column_name_survives_a_round_trip(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        """select 1.50BD as `größe €`, timestamp'2024-01-01 00:00:00.123456' as `a.b`, date'2024-01-01' as `a``b`,
                  X'00ff' as `a b,;{}()=`, named_struct('x', array(map('k', named_struct('y', 1L)))) as deep,
                  cast('nan' as double) as d, cast(null as string) as n, timestamp_ntz'2024-01-01 00:00:00' as dataid,
                  interval '1' day as i, parse_json('{"a": [1]}') as v"""
    )
    made = staged(frame, tmp_path, "dataid=2024-01-01")
    back = read(spark, [version(made)])
    assert back.columns == frame.columns
    assert [repr(row) for row in back.drop("v").collect()] == [repr(row) for row in frame.drop("v").collect()]


def test_a_thousand_columns_are_written_and_read(spark: SparkSession, tmp_path: Path) -> None:
    wide = spark.range(3, numPartitions=1).selectExpr(*(f"id + {n} as c{n}" for n in range(1000)))
    made = staged(wide, tmp_path)
    assert (made.row_count, made.content_digest is None) == (3, False)
    assert rows(read(spark, [version(made)]).select("c0", "c999")) == [(0, 999), (1, 1000), (2, 1001)]


def test_columns_that_spark_cannot_tell_apart_are_refused_before_writing(spark: SparkSession, tmp_path: Path) -> None:
    for frame in (spark.sql("select 1 as a, 2 as a"), spark.sql("select 1 as a, 2 as A")):
        with pytest.raises(IncompatibleSchema, match=r"chunk d .*columns a, [aA]"):
            staged(frame, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_differ_from_the_declared_schema_are_not_written(spark: SparkSession, tmp_path: Path) -> None:
    declared = StructType([StructField("a", IntegerType()), StructField("b", StringType(), metadata={"comment": "B"})])
    with pytest.raises(IncompatibleSchema) as caught:
        staged(spark.sql("select 1L as a, 2 as c"), tmp_path, schema=declared)
    wrong = ("column b is missing (string)", "column c (int) is not declared", "a is bigint, but declared as int")
    for message in ("chunk d", *wrong):
        assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    made = staged(spark.sql("select 'x' as b, 1 as a"), tmp_path, schema=declared)
    assert made.schema_hash == schema_hash(declared)


def test_a_column_declared_not_null_is_checked(spark: SparkSession, tmp_path: Path) -> None:
    declared = StructType([StructField("a", LongType(), nullable=False)])
    nulls = spark.range(4).selectExpr("nullif(id, 1) as a")
    (found,) = staged(nulls, tmp_path, schema=declared).checks
    assert (found.passed, found.detail) == (False, "a is null in 1 of 4 rows")
    assert staged(spark.range(4).selectExpr("id as a"), tmp_path, schema=declared).checks == ()


def test_the_schema_hash_covers_names_and_types_only(spark: SparkSession) -> None:
    def of(ddl: str) -> str:
        return schema_hash(_ddl(ddl))

    assert of("a int comment 'x', b array<int>") == of("a int not null, b array<int>")
    assert (
        len({of("a int"), of("b int"), of("a long"), of("a int, b int"), of("b int, a int"), of("a array<int>")}) == 6
    )
    assert of("a int, b string") == "b807bf20c393b6bbf1c6d44322773c49"  # stored in ledgers


def test_a_failed_write_names_the_chunk_and_the_cause(spark: SparkSession, tmp_path: Path) -> None:
    @udf("int")
    def broken(_: int) -> int:
        raise ValueError("the author's own words")

    with pytest.raises(StageFailed, match=r"chunk 2024-01-01 \(claim \d+\).*ValueError: the author's own words"):
        staged(spark.range(3).select(broken("id").alias("a")), tmp_path, "2024-01-01")
    with pytest.raises(StageFailed, match="DIVIDE_BY_ZERO"):
        staged(spark.range(3).selectExpr("1 / id as a"), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StageFailed, match="Parent path is not a directory"):
        staged(spark.range(3), tmp_path / "file")
    with pytest.raises(StageFailed, match="empty schema"):
        staged(spark.range(1).select(), tmp_path)
    with pytest.raises(InvalidInput, match="cannot be staged from list"):
        staged([1], tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("dataid", ["../../etc:=*", "ü [€] %2F" * 20])
def test_a_chunk_with_any_dataid_is_written_and_read(spark: SparkSession, tmp_path: Path, dataid: str) -> None:
    root = tmp_path / "root with [signs]"
    made = staged(spark.range(1), root, dataid)
    assert rows(read(spark, [version(made, dataid)])) == [(0,)]


def test_a_root_may_be_an_url_or_relative(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for root in (tmp_path.as_uri(), "relative"):
        monkeypatch.chdir(tmp_path)
        made = validate(write(spark.range(1), root, ClaimId(next(claims))))
        assert made.location.startswith(f"{root}/d/")
        assert misplaced(made.location, made.files, lambda: None) is None
        assert rows(read(spark, [version(made)])) == [(0,)]
    assert (tmp_path / "relative").is_dir()
