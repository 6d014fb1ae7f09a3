"""Checks judge figures without Spark: what they say of a version is a function of what was measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from opendataflow_dagster.model.check import Check, Figures
from opendataflow_dagster.model.checks import (
    between,
    fresh,
    holds,
    like_previous,
    not_null,
    row_count,
    unique,
)
from opendataflow_dagster.model.manifest import Written
from opendataflow_dagster.protocol.validate import validate

NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)


def micros(time: datetime) -> int:
    return int(time.timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("check", "values", "passed", "detail"),
    [
        (row_count(minimum=1), (), True, "914 rows, expected at least 1"),
        (row_count(1, 10), (), False, "914 rows, expected 1 to 10"),
        (not_null("a", "b"), (0, 0), True, "no nulls in 914 rows"),
        (not_null("a", "b"), (0, 2), False, "b is null in 2 of 914 rows"),
        (between("delay", -120, 2000), (0, None), True, "0 of 914 rows fail"),
        (between("delay", -120, 2000), (1, "99999"), False,
         "1 of 914 rows fails between(delay, -120, 2000), e.g. 99999"),
        (between("delay", -120, 2000), (2, "9 9"), False,
         "2 of 914 rows fail between(delay, -120, 2000), e.g. '9 9'"),
        (unique("a"), (0, None, None), True, "914 rows, no repeated key"),
        (unique("a"), (1, 2, "x"), False, "2 of 914 rows fail unique(a): 1 repeated key, e.g. x"),
        (holds("positive", "a > 0"), (3,), False, "3 of 914 rows fail 'positive'"),
        (fresh("at", timedelta(hours=1)), (None,), False, "at has no value in 914 rows"),
        (fresh("at", timedelta(hours=1)), (micros(NOON),), True,
         "the newest at in 914 rows is 2024-01-02 12:00:00 UTC, 0:00:00 ago (limit 1:00:00)"),
        (fresh("at", timedelta(hours=1)), (micros(NOON - timedelta(hours=2)),), False,
         "the newest at in 914 rows is 2024-01-02 10:00:00 UTC, 2:00:00 ago (limit 1:00:00)"),
        (fresh("at", timedelta(hours=1)), (micros(NOON + timedelta(hours=2)),), True,
         "the newest at in 914 rows is 2024-01-02 14:00:00 UTC, in the future (limit 1:00:00)"),
        (like_previous(0.2), (), False, "914 rows, previously 500 (+82.8%, limit 20%)"),
        (like_previous(1), (), True, "914 rows, previously 500 (+82.8%, limit 100%)"),
    ],
)  # fmt: skip
def test_a_check_judges_by_its_figures(check: Check, values: tuple[Any, ...], passed: bool, detail: str) -> None:
    figures = Figures(rows=914, values=values, previous_rows=500, now=NOON)
    assert check.judge(figures) == (passed, detail)


def test_validate_keeps_every_result_in_the_order_of_the_checks() -> None:
    written = Written(
        location="/warehouse/flights/2024-01-01/7",
        files=(),
        row_count=2,
        schema_hash="hash",
        content_digest="digest",
        checks=(not_null("a"), row_count(5), like_previous(0.1)),
        values=((1,), (), ()),
    )
    manifest = validate(written)
    assert [(result.name, result.passed) for result in manifest.checks] == [
        ("not_null(a)", False),
        ("row_count", False),
        ("like_previous(0.1)", True),
    ]
    assert (manifest.location, manifest.row_count, manifest.content_digest) == (written.location, 2, "digest")
