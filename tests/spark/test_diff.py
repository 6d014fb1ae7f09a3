"""Rows of two versions are compared in the same way in this process and on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from opendataflow_dagster.cli.output import json_text
from opendataflow_dagster.model.columns import column_changes, comparable_columns
from opendataflow_dagster.model.diff import ColumnChange, Pairing, RowDiff
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.warehouse import arrow, arrow_diff, parquet, spark_diff
from tests.factories import Flow, key
from tests.operator import Odf
from tests.warehouse import staged

Compare = Callable[..., RowDiff]


@pytest.fixture(params=["in this process", "on Spark"])
def compare(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Compare:
    def run(old: DataFrame, new: DataFrame, *key: str, most: int = 100) -> RowDiff:
        a, b = ((made.location, made.files) for made in (staged(old, tmp_path), staged(new, tmp_path)))
        columns = comparable_columns(arrow.footers(*a).columns, arrow.footers(*b).columns)
        pairing = Pairing(key=key, columns=columns)
        if request.param == "on Spark":
            frames = parquet.read_files(spark, *a), parquet.read_files(spark, *b)
            return spark_diff.compare(frames[0], frames[1], pairing, most)
        return arrow_diff.compare(arrow.table(*a), arrow.table(*b), pairing, most)

    return run


def figures(diff: RowDiff) -> tuple[int, int, int]:
    return diff.added, diff.removed, diff.changed


def changes(diff: RowDiff) -> dict[str, tuple[object, object]]:
    """By key."""
    return {
        ",".join(example.key.values()): (dict(example.old or {}), dict(example.new or {})) for example in diff.examples
    }


def test_rows_are_paired_by_key_and_each_changed_value_is_counted(spark: SparkSession, compare: Compare) -> None:
    old = spark.createDataFrame([(1, "a", 10), (2, "b", 20), (3, "c", 30)], "id int, name string, n int")
    new = spark.createDataFrame([(4, "d", 40), (3, "x", 31), (2, "y", 20)], "id int, name string, n int")
    diff = compare(old, new, "id")
    assert (diff.old_rows, diff.new_rows, *figures(diff)) == (3, 3, 1, 1, 2)
    assert diff.key == ("id",)
    assert diff.changed_values == {"name": 2, "n": 1}
    assert [(example.change, dict(example.key)) for example in diff.examples] == [
        ("changed", {"id": "2"}),
        ("changed", {"id": "3"}),
        ("added", {"id": "4"}),
        ("removed", {"id": "1"}),
    ]
    assert changes(diff) == {
        "2": ({"name": "b"}, {"name": "y"}),
        "3": ({"name": "c", "n": "30"}, {"name": "x", "n": "31"}),
        "4": ({}, {"name": "d", "n": "40"}),
        "1": ({"name": "a", "n": "10"}, {}),
    }
    assert RowDiff.from_json(json.loads(json_text(diff))) == diff
    assert len(compare(old, new, "id", most=1).examples) == 3


def test_without_a_key_rows_are_compared_as_multisets(spark: SparkSession, compare: Compare) -> None:
    old = spark.createDataFrame([(1, "a"), (1, "a"), (1, "a"), (2, "b")], "id int, name string")
    new = spark.createDataFrame([(2, "b"), (1, "a"), (2, "c"), (2, "c")], "id int, name string")
    diff = compare(old, new)
    assert (diff.old_rows, diff.new_rows, *figures(diff), diff.key) == (4, 4, 2, 2, 0, ())
    assert [(example.change, dict(example.old or example.new or {}), example.times) for example in diff.examples] == [
        ("added", {"id": "2", "name": "c"}, 2),
        ("removed", {"id": "1", "name": "a"}, 2),
    ]
    assert compare(old, old).equal


def test_a_key_that_occurs_twice_is_named_and_whole_rows_are_compared(spark: SparkSession, compare: Compare) -> None:
    once = spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
    twice = spark.createDataFrame([(1, "a"), (1, "b"), (None, "b"), (None, "c")], "id int, name string")
    diff = compare(once, twice, "id")
    assert (diff.key, *figures(diff)) == ((), 3, 1, 0)
    assert diff.note == "2 keys (id) occur more than once in the new rows, e.g. id=null"
    assert compare(twice, once, "id").note.startswith("2 keys (id) occur more than once in the old rows")


def test_nulls_equal_each_other_and_differ_from_values(spark: SparkSession, compare: Compare) -> None:
    old = spark.createDataFrame([(None, None), (1, None), (2, "b")], "id int, name string")
    new = spark.createDataFrame([(None, None), (1, "null"), (2, None)], "id int, name string")
    diff = compare(old, new, "id")
    assert figures(diff) == (0, 0, 2)
    assert changes(diff) == {"1": ({"name": "null"}, {"name": "'null'"}), "2": ({"name": "b"}, {"name": "null"})}
    assert figures(compare(old, new)) == (2, 2, 0)


def test_nan_equals_nan_and_both_zeros_are_equal(spark: SparkSession, compare: Compare) -> None:
    rows = "select id, cast(x as double) as x, cast(x as float) as y from values {} as t(id, x)"
    old = spark.sql(rows.format("(1, 'NaN'), (2, '0.0'), (3, 'NaN'), (4, '0.1')"))
    new = spark.sql(rows.format("(1, 'NaN'), (2, '-0.0'), (3, '1.5'), (4, '0.1')"))
    diff = compare(old, new, "id")
    assert changes(diff) == {"3": ({"x": "NaN", "y": "NaN"}, {"x": "1.5", "y": "1.5"})}
    assert figures(compare(old, new)) == (1, 1, 0)


def test_decimals_dates_times_and_binary_are_compared_exactly(spark: SparkSession, compare: Compare) -> None:
    row = (
        "select 1 as id, cast('{}' as decimal(38,18)) as price, timestamp '{}' as at, timestamp_ntz '{}' as local, "
        "date '{}' as day, X'{}' as raw, {} as yes"
    )
    old = spark.sql(
        row.format("0.1", "2024-01-01 00:00:00.000001", "2024-01-01 10:00:00", "2024-01-01", "00ff", "true")
    )
    new = spark.sql(
        row.format(
            "0.100000000000000001", "2024-01-01 00:00:00.000002", "2024-01-01 11:00:00", "2024-01-02", "00fe", "false"
        )
    )
    assert compare(old, old, "id").equal
    assert changes(compare(old, new, "id")) == {
        "1": (
            {
                "price": "0.100000000000000000",
                "at": "2024-01-01 00:00:00.000001+00:00",
                "local": "2024-01-01 10:00:00",
                "day": "2024-01-01",
                "raw": "0x00ff",
                "yes": "true",
            },
            {
                "price": "0.100000000000000001",
                "at": "2024-01-01 00:00:00.000002+00:00",
                "local": "2024-01-01 11:00:00",
                "day": "2024-01-02",
                "raw": "0x00fe",
                "yes": "false",
            },
        )
    }


def test_nested_values_are_compared_and_the_order_of_a_map_does_not_matter(
    spark: SparkSession, compare: Compare
) -> None:
    row = "select 1 as id, map({}) as m, array({}) as a, named_struct('x', {}, 'y', array(map({}))) as s"
    old = spark.sql(row.format("'a', 1, 'b', 2", "1, null", "double('NaN')", "'a', 1, 'b', 2"))
    same = spark.sql(row.format("'b', 2, 'a', 1", "1, null", "double('NaN')", "'b', 2, 'a', 1"))
    new = spark.sql(row.format("'a', 1, 'b', 3", "null, 1", "double('NaN')", "'a', 1, 'b', 4"))
    assert compare(old, same, "id").equal
    assert compare(old, same).equal
    assert compare(old, new, "id").changed_values == {"m": 1, "a": 1, "s": 1}
    assert figures(compare(old, new)) == (1, 1, 0)
    (example,) = compare(old, new, "id").examples
    assert example.old == {"m": "[[a, 1], [b, 2]]", "a": "[1, null]", "s": "{x: NaN, y: [[[a, 1], [b, 2]]]}"}


def test_an_added_column_is_a_change_of_columns_and_not_of_every_row(spark: SparkSession, compare: Compare) -> None:
    old = spark.createDataFrame([(1, "a")], "id int, name string")
    new = spark.createDataFrame([(1, "a", 5)], "id int, name string, n int")
    assert compare(old, new, "id").equal
    assert compare(old, new).equal


def test_numbers_of_another_type_are_compared_by_value(spark: SparkSession, compare: Compare) -> None:
    old = spark.createDataFrame([(1, 1, 2), (2, 2, 3)], "id int, n int, m int")
    new = spark.sql(
        "select bigint(id) as id, double(n) as n, decimal(m) as m from values (1, 1, 2), (2, 2.5, 4) as t(id, n, m)"
    )
    diff = compare(old, new, "id")
    assert diff.changed_values == {"n": 1, "m": 1}
    assert changes(diff) == {"2": ({"n": "2.0", "m": "3"}, {"n": "2.5", "m": "4"})}


def test_a_version_without_rows_is_compared(spark: SparkSession, compare: Compare) -> None:
    full = spark.createDataFrame([(1, "a")], "id int, name string")
    assert figures(compare(full.limit(0), full, "id")) == (1, 0, 0)
    assert figures(compare(full, full.limit(0), "id")) == (0, 1, 0)
    assert figures(compare(full, full.limit(0))) == (0, 1, 0)
    assert compare(full.limit(0), full.limit(0)).equal
    assert compare(full.limit(0), full.limit(0), "id").equal


def test_long_values_are_cut_where_they_differ(spark: SparkSession, compare: Compare) -> None:
    old = spark.createDataFrame([(1, "x" * 1000 + "1", "\x1b[2J")], "id int, name string, `a``b.c` string")
    new = spark.createDataFrame([(1, "x" * 1000 + "2" + "z" * 100, "b")], "id int, name string, `a``b.c` string")
    ((before, after),) = changes(compare(old, new, "id")).values()
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert before["name"] == f"...{'x' * 20}1"
    assert "x2z" in after["name"]
    assert max(map(len, [*before.values(), *after.values()])) < 70
    assert before["a`b.c"] == r"'\x1b[2J'"


def test_columns_are_added_removed_retyped_and_moved() -> None:
    old = {"id": "int", "a": "string", "b": "double", "gone": "date"}
    new = {"b": "double", "id": "bigint", "a": "string", "late": "array<int>"}
    assert column_changes(old, new) == (
        ColumnChange(column="late", change="added", old=None, new="array<int>"),
        ColumnChange(column="gone", change="removed", old="date", new=None),
        ColumnChange(column="id", change="type", old="int", new="bigint"),
        ColumnChange(column="b", change="moved", old="3", new="1"),
    )
    assert comparable_columns({"a": "int", "b": "int", "c": "int"}, {"c": "string", "b": "float", "a": "int"}) == {
        "b": True,
        "a": False,
    }


def test_versions_of_more_than_two_million_values_are_compared_on_spark(flow: Flow) -> None:
    flow.register("load: -> raw")
    odf = Odf(url=flow.url)
    whole = pyarrow.table({f"c{place}": pyarrow.array(range(300_000)) for place in range(4)})
    for rows in (whole, whole.slice(1)):
        if flow.status("raw/1") == "READY":
            resubmit(flow.ledger, [key("raw/1")], by="test")
        taken = claim(flow.ledger, "load", "1")
        folder = flow.root / "raw" / "1" / f"{taken.claim_id}-raw"
        folder.mkdir(parents=True)
        path = folder / "part-0.parquet"
        pyarrow.parquet.write_table(rows, path)
        made = NewManifest(location=str(folder), files=(File(path=path.name, size=path.stat().st_size),))
        publish(flow.ledger, taken, made)
    compared = odf.json("diff", "raw", "1", "--key", "c0")["rows"]
    assert (compared["old_rows"], compared["new_rows"], compared["removed"]) == (300_000, 299_999, 1)
    assert compared["examples"] == [
        {
            "change": "removed",
            "key": {"c0": "0"},
            "old": {"c1": "0", "c2": "0", "c3": "0"},
            "new": None,
            "times": 1,
        }
    ]
