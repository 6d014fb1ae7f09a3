"""Checks are measured during the write and judged by their figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from opendataflow_dagster import ChunkContext, dataset, static
from opendataflow_dagster.model.check import GROUP_ROWS, Check, Figures
from opendataflow_dagster.model.checks import (
    accepted,
    between,
    fresh,
    holds,
    like_previous,
    matches,
    not_null,
    row_count,
    unique,
)
from opendataflow_dagster.model.errors import InvalidDefinition, StageFailed
from opendataflow_dagster.testing import pipeline
from tests.warehouse import staged

ROWS = """
    select * from values (1, 'a', 1.5BD, date'2024-01-01', "it's", true),
                         (2, 'b', 2.5BD, date'2024-01-02', '$' || '{spark.app.name}', true),
                         (2, 'c', -1.0BD, date'2024-01-03', 'a\\\\b', true),
                         (null, null, null, null, null, null) as t(n, `te xt`, d, `day`, odd, b)
"""

# check, whether it passes, the start of its detail
EXPECTED: list[tuple[Check, bool, str]] = [
    (row_count(minimum=4, maximum=4), True, "4 rows, expected 4"),
    (not_null("te xt", "n"), False, "te xt is null in 1 of 4 rows; n is null in 1 of 4 rows"),
    (unique("n"), False, "2 of 4 rows fail unique(n): 1 repeated key, e.g. 2"),
    (unique("n", "te xt"), True, "4 rows, no repeated key"),
    (accepted("te xt", ["a", "b"]), False, "1 of 4 rows fails accepted(te xt), e.g. c"),
    (accepted("odd", ["it's", "${spark.app.name}", "a\\b"]), True, "0 of 4 rows fail"),
    (accepted("b", [True]), True, "0 of 4 rows fail"),
    (accepted("d", [Decimal("1.5"), Decimal("2.5"), Decimal(-1)]), True, "0 of 4 rows fail"),
    (between("d", 0, 2.5), False, "1 of 4 rows fails between(d, 0, 2.5), e.g. -1.0"),
    (between("day", date(2024, 1, 1), date(2024, 1, 3)), True, "0 of 4 rows fail"),
    (between("te xt", "a", "b"), False, "1 of 4 rows fails between(te xt, a, b), e.g. c"),
    (matches("te xt", "^[ab]$"), False, "1 of 4 rows fails matches(te xt, ^[ab]$), e.g. c"),
    (matches("odd", r"'|\$\{|\\"), True, "0 of 4 rows fail"),
    (fresh("day", timedelta(days=1)), False, "the newest day in 4 rows is 2024-01-03 00:00:00 UTC"),
    (like_previous(0.5), False, "4 rows, previously 10 (-60.0%, limit 50%)"),
    (holds("n is a number", "n is not null -- comment"), False, "1 of 4 rows fails 'n is a number'"),
    (holds("null is not true", "n > 0"), False, "1 of 4 rows fails 'null is not true'"),
    (holds("all positive", "coalesce(n, 1) > 0"), True, "0 of 4 rows fail"),
]


def test_every_check_reports_its_result_and_figures(spark: SparkSession, tmp_path: Path) -> None:
    checks = [check for check, _, _ in EXPECTED]
    made = staged(spark.sql(ROWS), tmp_path, checks=checks, previous_rows=10)
    found = {result.name: result for result in made.checks}
    assert len(found) == len(EXPECTED)
    for check, passed, detail in EXPECTED:
        assert (found[check.name].passed, found[check.name].detail[: len(detail)]) == (passed, detail)


def test_every_check_can_both_pass_and_fail(spark: SparkSession, tmp_path: Path) -> None:
    """The data of the test above fails most checks; this data passes them."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    checks: list[Check] = [
        row_count(maximum=1),
        not_null("a"),
        unique("a"),
        accepted("a", [0, 1]),
        between("a", 0, 1),
        matches("s", "^[01]$"),
        fresh("t", timedelta(minutes=5)),
        between("t", datetime(2024, 1, 1, tzinfo=UTC), soon),
        like_previous(1),
    ]
    frame = spark.range(2).selectExpr("id as a", "string(id) as s", "current_timestamp() as t")
    made = staged(frame, tmp_path, checks=checks, previous_rows=1)
    assert [result.name for result in made.checks if not result.passed] == ["row_count"]


def test_checks_judge_a_version_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    checks: list[Check] = [row_count(minimum=1), not_null("id"), unique("id"), fresh("id", timedelta(1))]
    empty = spark.range(3).where("id < 0").selectExpr("timestamp_seconds(id) as id")
    made = staged(empty, tmp_path, checks=checks)
    assert [result.passed for result in made.checks] == [False, True, True, False]
    assert made.checks[3].detail == "id has no value in 0 rows"


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (not_null("nosuch"), r"check not_null\(nosuch\) needs column nosuch, which does not exist \(columns: id\)"),
        (holds("bad", "nosuch > 1"), "Spark cannot evaluate check bad.*nosuch"),
        (holds("broken", "id >"), "Spark cannot evaluate check broken"),
        (holds("many", "max(id) > 1"), "Spark cannot evaluate check many"),
        (holds("a number", "id"), "Spark cannot evaluate check a number"),
    ],
)
def test_a_check_that_spark_cannot_evaluate_is_named(
    spark: SparkSession, tmp_path: Path, check: Check, message: str
) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        staged(spark.range(3), tmp_path, checks=[check])
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_raises_on_the_data_fails_the_write(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StageFailed, match=r"chunk d \(claim \d+\).*DIVIDE_BY_ZERO"):
        staged(spark.range(3), tmp_path, checks=[holds("ratio", "1 / id > 0")])


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: row_count(), "neither a minimum nor a maximum"),
        (lambda: row_count(5, 4), "the minimum 5 is above the maximum 4"),
        (lambda: row_count(-1), "-1 is not a number of rows"),
        (lambda: not_null(), "not_null names no column"),
        (lambda: unique("a", "a"), "unique names the column a twice"),
        (lambda: not_null(""), "'' is not a column name"),
        (lambda: accepted("a", []), r"accepted\(a\) accepts nothing"),
        (lambda: accepted("a", "abc"), r"accepted\(a\): 'abc' is a single text"),
        (lambda: accepted("a", [None]), r"accepted\(a\): a column cannot be compared with None"),  # type: ignore[list-item]
        (lambda: between("a", 2, 1), r"between\(a\): the lower bound 2 is above the upper bound 1"),
        (lambda: between("a", 1, "x"), r"between\(a\): 1 and 'x' cannot be compared"),
        (lambda: between("a", 0.0, float("nan")), "nan is not a finite number"),
        (lambda: matches("a", ""), r"matches\(a\)"),
        (lambda: fresh("a", timedelta(0)), r"fresh\(a\).*is not a duration"),
        (lambda: like_previous(-1), "like_previous: -1 must be a fraction"),
        (lambda: holds("", "a > 1"), "has no name"),
        (lambda: holds("x", " "), r"holds\('x'\) has no predicate"),
    ],
)
def test_an_invalid_check_is_refused_by_name(declare: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        declare()


def test_the_same_check_twice_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="declares the check row_count twice"):
        staged(spark.range(3), tmp_path, checks=[row_count(1), row_count(2)])


@dataclass(frozen=True, kw_only=True)
class MeanBetween(Check):
    low: float
    high: float

    def judge(self, figures: Figures) -> tuple[bool, str]:
        (mean,) = figures.values
        return self.low <= mean <= self.high, f"the mean is {mean:g}"


@dataclass(frozen=True, kw_only=True)
class LargestGroup(Check):
    limit: int

    def judge(self, figures: Figures) -> tuple[bool, str]:
        (largest,) = figures.values
        return largest <= self.limit, f"the largest group has {largest} of {figures.rows} rows"


def test_a_check_is_one_class_that_an_author_writes(spark: SparkSession) -> None:
    mean = MeanBetween(name="mean amount", columns=("amount",), aggregates=("avg(amount)",), low=0, high=10)
    skew = LargestGroup(name="skew", columns=("shop",), group_by=("shop",), aggregates=(f"max({GROUP_ROWS})",), limit=2)

    @dataset(partitions=static("good", "high", "skewed"), checks=[mean, skew])
    def orders(context: ChunkContext) -> DataFrame:
        rows = {"good": "(1, 'a'), (2, 'b')", "high": "(1, 'a'), (99, 'b')", "skewed": "(1, 'a'), (1, 'a'), (1, 'a')"}
        return context.spark.sql(f"select * from values {rows[context.dataid]} as t(amount, shop)")

    with pipeline(orders) as flow:
        flow.make("orders/good")
        assert "failed its checks (mean amount: the mean is 50)" in flow.refusal("orders/high")
        assert "failed its checks (skew: the largest group has 3 of 3 rows)" in flow.refusal("orders/skewed")


@pytest.mark.parametrize("group_by", [(), ("id",)])
def test_an_authors_check_that_spark_cannot_evaluate_is_named(
    spark: SparkSession, tmp_path: Path, group_by: tuple[str, ...]
) -> None:
    for aggregate in ("avg(nosuch)", "id +", "id"):
        check = MeanBetween(name="mean", aggregates=(aggregate,), group_by=group_by, low=0, high=1)
        with pytest.raises(InvalidDefinition, match=r"Spark cannot evaluate check mean: .*; correct the check"):
            staged(spark.range(3), tmp_path, checks=[check])


def test_column_names_are_compared_as_the_session_does(spark: SparkSession, tmp_path: Path) -> None:
    checks: list[Check] = [not_null("ID"), unique("Id"), between("iD", 0, 2)]
    made = staged(spark.range(3), tmp_path, checks=checks)
    assert [result.passed for result in made.checks] == [True, True, True]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        for check in checks:
            with pytest.raises(InvalidDefinition, match=r"needs column (ID|Id|iD), which does not exist"):
                staged(spark.range(3), tmp_path, "refused", checks=[check])
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert not (tmp_path / "refused").exists()


def test_unique_works_on_a_column_named_count(spark: SparkSession, tmp_path: Path) -> None:
    made = staged(spark.sql("select * from values (1), (1), (2) as t(`count`)"), tmp_path, checks=[unique("count")])
    assert made.checks[0].detail == "2 of 3 rows fail unique(count): 1 repeated key, e.g. 1"
