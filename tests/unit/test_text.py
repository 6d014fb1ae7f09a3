"""Text for people: lists are cut, and say so."""

from __future__ import annotations

import pytest

from opendataflow_dagster.model.manifest import CheckResult
from opendataflow_dagster.model.text import counted, did_you_mean, listing


@pytest.mark.parametrize(
    ("count", "separator", "text"),
    [
        (0, ", ", ""),
        (1, ", ", "0"),
        (3, ", ", "0, 1, 2"),
        (4, ", ", "0, 1, 2 and 1 more"),
        (2003, ", ", "0, 1, 2 and 2,000 more"),
        (3, "; ", "0; 1; 2"),
        (4, "; ", "0; 1; 2; and 1 more"),
    ],
)
def test_a_long_list_is_cut_and_counts_the_rest(count: int, separator: str, text: str) -> None:
    assert listing(range(count), separator=separator) == text


def test_a_noun_agrees_with_its_number() -> None:
    assert [counted(number, "row") for number in (0, 1, 2, 1000)] == ["0 rows", "1 row", "2 rows", "1,000 rows"]


def test_a_check_result_names_its_check_once() -> None:
    assert str(CheckResult(name="row_count", passed=False, detail="0 rows")) == "row_count: 0 rows"
    assert str(CheckResult(name="unique(a)", passed=False, detail="2 rows fail unique(a)")) == "2 rows fail unique(a)"


def test_the_nearest_names_ignore_case_and_find_a_part_of_a_name() -> None:
    known = ["delays", "flights", "flights_old", "raw_weather"]
    assert did_you_mean("FLIGHT", known, "list them") == "did you mean flights or flights_old?"
    assert did_you_mean("weather", known, "list them") == "did you mean raw_weather?"
    assert did_you_mean("xyz", known, "list them") == "list them"
    assert did_you_mean("aa", ["aaa", "aab", "aac", "aad"], "list them").count(",") == 1
    assert did_you_mean("x", [], "list them") == "list them"
