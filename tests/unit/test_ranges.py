"""Ranges of dataids."""

from __future__ import annotations

import pytest

from opendataflow_dagster.model.ranges import DataIdRange, parse_range


@pytest.mark.parametrize(
    ("word", "low", "high"),
    [("1..10", "1", "10"), ("2024-01-01..", "2024-01-01", ""), ("..b", "", "b"), ("..", "", "")],
)
def test_two_dots_make_a_range_and_either_end_may_be_open(word: str, low: str, high: str) -> None:
    assert parse_range(word) == DataIdRange(low=low, high=high)


def test_a_word_without_two_dots_is_not_a_range() -> None:
    assert parse_range("2024-01-01") is None


@pytest.mark.parametrize(
    ("word", "inside", "outside"),
    [
        ("2..10", ["2", "9", "10"], ["1", "11", "100"]),
        ("2024-01-30..2024-02-01", ["2024-01-30", "2024-01-31", "2024-02-01"], ["2024-01-29", "2024-02-02"]),
        ("9..", ["9", "10"], ["8"]),
        ("..b", ["a", "b"], ["c"]),
        ("1..2", ["01", "1", "02"], ["3"]),
    ],
)
def test_a_range_includes_both_ends_in_natural_order(word: str, inside: list[str], outside: list[str]) -> None:
    bounds = parse_range(word)
    assert bounds is not None
    assert [dataid for dataid in [*inside, *outside] if dataid in bounds] == inside
