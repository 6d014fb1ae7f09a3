"""Checks: what is declared is what is measured, with figures, during the write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from opendataflow_dagster.model.checks import (
    Check,
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
from opendataflow_dagster.model.ids import ClaimId, DataId
from opendataflow_dagster.warehouse.parquet import stage

ROWS = """
    select * from values (1, 'a', 1.5BD, date'2024-01-01', "it's", true),
                         (2, 'b', 2.5BD, date'2024-01-02', '$' || '{spark.app.name}', true),
                         (2, 'c', -1.0BD, date'2024-01-03', 'a\\\\b', true),
                         (null, null, null, null, null, null) as t(n, `te xt`, d, `day`, odd, b)
"""

# check, passed, what its detail must say
EXPECTED: list[tuple[Check, bool, str]] = [
    (row_count(minimum=4, maximum=4), True, "4 rows, wanted are 4 to 4"),
    (not_null("te xt", "n"), False, "te xt is null in 1 of 4 rows; n is null in 1 of 4 rows"),
    (unique("n"), False, "2 of 4 rows share 1 values, for example '2'"),
    (unique("n", "te xt"), True, "no two of 4 rows are equal"),
    (accepted("te xt", ["a", "b"]), False, "1 of 4 rows are not, for example 'c'"),
    (accepted("odd", ["it's", "${spark.app.name}", "a\\b"]), True, "0 of 4 rows are not"),
    (accepted("b", [True]), True, "0 of 4 rows are not"),
    (accepted("d", [Decimal("1.5"), Decimal("2.5"), Decimal(-1)]), True, "0 of 4 rows are not"),
    (between("d", 0, 2.5), False, "1 of 4 rows are not, for example '-1.0'"),
    (between("day", date(2024, 1, 1), date(2024, 1, 3)), True, "0 of 4 rows are not"),
    (between("te xt", "a", "b"), False, "1 of 4 rows are not, for example 'c'"),
    (matches("te xt", "^[ab]$"), False, "1 of 4 rows are not, for example 'c'"),
    (matches("odd", r"'|\$\{|\\"), True, "0 of 4 rows are not"),
    (fresh("day", timedelta(days=1)), False, "the newest of 4 rows is 2024-01-03 00:00:00 UTC"),
    (like_previous(0.5), False, "4 rows, before were 10 (-60.0%)"),
    (holds("n is a number", "n is not null -- said"), False, "1 of 4 rows are not"),
    (holds("null is not true", "n > 0"), False, "1 of 4 rows are not"),
    (holds("all positive", "coalesce(n, 1) > 0"), True, "0 of 4 rows are not"),
]


def test_every_check_has_its_result_and_its_figures(spark: SparkSession, tmp_path: Path) -> None:
    checks = [check for check, _, _ in EXPECTED]
    made = stage(
        spark.sql(ROWS), root=str(tmp_path), dataid=DataId("d"), claim_id=ClaimId(1), checks=checks, previous_rows=10
    )
    found = {result.name: result for result in made.checks}
    assert len(found) == len(EXPECTED)
    for check, passed, detail in EXPECTED:
        assert (found[check.name].passed, found[check.name].detail[: len(detail)]) == (passed, detail)


def test_the_opposite_of_each_figure(spark: SparkSession, tmp_path: Path) -> None:
    """No check passes whatever the data is, or fails whatever it is."""
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
    made = stage(frame, root=str(tmp_path), dataid=DataId("d"), claim_id=ClaimId(1), checks=checks, previous_rows=1)
    assert [one.name for one in made.checks if not one.passed] == ["row_count"]


def test_checks_of_a_version_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    checks: list[Check] = [row_count(minimum=1), not_null("id"), unique("id"), fresh("id", timedelta(1))]
    empty = spark.range(3).where("id < 0").selectExpr("timestamp_seconds(id) as id")
    made = stage(empty, root=str(tmp_path), dataid=DataId("d"), claim_id=ClaimId(1), checks=checks)
    assert [one.passed for one in made.checks] == [False, True, True, False]
    assert made.checks[3].detail == "id has no time in 0 rows"


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (not_null("nosuch"), r"the check not_null\(nosuch\) is about nosuch, which is not among the columns \(id\)"),
        (holds("bad", "nosuch > 1"), "check bad cannot be asked.*nosuch"),
        (holds("broken", "id >"), "check broken cannot be asked"),
        (holds("many", "max(id) > 1"), "check many cannot be asked"),
        (holds("a number", "id"), "check a number cannot be asked"),
    ],
)
def test_a_check_that_cannot_be_asked_is_named(spark: SparkSession, tmp_path: Path, check: Check, said: str) -> None:
    with pytest.raises(InvalidDefinition, match=said):
        stage(spark.range(3), root=str(tmp_path), dataid=DataId("d"), claim_id=ClaimId(1), checks=[check])
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_breaks_on_the_data_fails_the_write(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StageFailed, match=r"chunk d \(claim 1\).*DIVIDE_BY_ZERO"):
        stage(
            spark.range(3),
            root=str(tmp_path),
            dataid=DataId("d"),
            claim_id=ClaimId(1),
            checks=[holds("ratio", "1 / id > 0")],
        )


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: row_count(), "neither a minimum nor a maximum"),
        (lambda: row_count(5, 4), "at least 5 and at most 4"),
        (lambda: row_count(-1), "-1 is no number of rows"),
        (lambda: not_null(), "not_null names no column"),
        (lambda: unique("a", "a"), "unique names the column a twice"),
        (lambda: not_null(""), "'' is no name of a column"),
        (lambda: accepted("a", []), r"accepted\(a\) accepts nothing"),
        (lambda: accepted("a", "abc"), r"accepted\(a\): 'abc' is one text"),
        (lambda: accepted("a", [None]), r"accepted\(a\): a column cannot be compared with None"),  # type: ignore[list-item]
        (lambda: between("a", 2, 1), r"between\(a\): nothing is at least 2"),
        (lambda: between("a", 1, "x"), r"between\(a\): 1 and 'x' cannot be compared"),
        (lambda: between("a", 0.0, float("nan")), "nan is no number"),
        (lambda: matches("a", ""), r"matches\(a\)"),
        (lambda: fresh("a", timedelta(0)), r"fresh\(a\).*no length of time"),
        (lambda: like_previous(-1), "like_previous: -1 is no share"),
        (lambda: holds("", "a > 1"), "has no name"),
        (lambda: holds("x", " "), r"holds\('x'\) has no predicate"),
    ],
)
def test_a_bad_declaration_is_refused_with_its_name(declare: Callable[[], Any], said: str) -> None:
    with pytest.raises(InvalidDefinition, match=said):
        declare()


def test_the_same_check_twice_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="declares the check row_count twice"):
        stage(
            spark.range(3),
            root=str(tmp_path),
            dataid=DataId("d"),
            claim_id=ClaimId(1),
            checks=[row_count(1), row_count(2)],
        )
