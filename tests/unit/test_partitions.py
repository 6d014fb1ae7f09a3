"""Partitions and the order of dataids, without a database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opendataflow_dagster.model.errors import InvalidDefinition
from opendataflow_dagster.model.ids import natural_key
from opendataflow_dagster.model.partitions import (
    RangePartitions,
    TimePartitions,
    daily,
    hourly,
    monthly,
    partitions_from_json,
    ranges,
    static,
    weekly,
)
from tests.partitions import BORDERS, KINDS, range_partitions, text_of


def test_the_order_is_by_value() -> None:
    given_order = ["a10", "2024-10-1", "10", "2024-2-1", "9", "010", "2024-01-10", "a9", "1", "2024-01-09"]
    wanted = ["1", "9", "010", "10", "2024-01-09", "2024-01-10", "2024-2-1", "2024-10-1", "a9", "a10"]
    assert sorted(given_order, key=natural_key) == wanted


@given(partitions=range_partitions())
def test_a_range_has_exactly_the_chunks_that_it_lists(partitions: RangePartitions) -> None:
    assume((partitions.last - partitions.first) // partitions.step < 1000)
    listed = list(partitions.all())
    assert all(partitions.has(dataid) for dataid in listed)
    assert listed[0].startswith(f"{partitions.first}-")
    assert listed[-1].endswith(f"-{partitions.last}")
    numbers = [tuple(map(int, dataid.split("-"))) for dataid in listed]
    assert all(before[1] + 1 == after[0] for before, after in pairwise(numbers))


def by_brute_force(partitions: TimePartitions, start: datetime, end: datetime) -> list[str]:
    """Every hour from the start to the end is looked at."""
    found, time = [], start
    while time < end:
        text = text_of(partitions.kind, time)
        if partitions.kind == "hourly" or time.hour == 0:
            exact = datetime.combine(date.fromisoformat(text[:10]), datetime.min.time())
            if partitions.has(text) and (partitions.kind == "hourly" or exact == time):
                found.append(text)
        time += timedelta(hours=1)
    return found


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_the_chunks_between_two_times_are_those_that_begin_there(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    around = data.draw(st.sampled_from([border for border in BORDERS if 1 < border.year < 9999]))
    days = st.integers(-40, 40)
    first, last = sorted(
        text_of(kind, around + timedelta(days=data.draw(days), hours=data.draw(days))) for _ in range(2)
    )
    partitions = TimePartitions(kind=kind, first=first, last=data.draw(st.sampled_from([last, None])))
    start = around + timedelta(days=data.draw(days), hours=data.draw(st.sampled_from([0, 0, 1, 23])))
    end = start + timedelta(days=data.draw(st.integers(-1, 70)), hours=data.draw(st.sampled_from([0, 0, 1])))
    assert list(partitions.between(start, end)) == by_brute_force(partitions, start, end)


@pytest.mark.parametrize(
    ("kind", "first", "start", "end", "wanted"),
    [
        ("daily", "2024-01-01", "2024-02-28", "2024-03-02", ["2024-02-28", "2024-02-29", "2024-03-01"]),
        ("daily", "2023-01-01", "2023-02-28", "2023-03-02", ["2023-02-28", "2023-03-01"]),
        ("monthly", "2023-11-01", "2023-01-31", "2024-03-01", ["2023-11-01", "2023-12-01", "2024-01-01", "2024-02-01"]),
        ("weekly", "2024-02-26", "2024-02-27", "2024-03-12", ["2024-03-04", "2024-03-11"]),
        ("weekly", "2024-12-25", "2024-12-25", "2025-01-08", ["2024-12-25", "2025-01-01"]),
        ("hourly", "2024-02-29-22:00", "2024-02-29", "2024-03-01", ["2024-02-29-22:00", "2024-02-29-23:00"]),
        ("monthly", "1900-01-01", "2100-02-01", "2100-03-02", ["2100-02-01", "2100-03-01"]),
    ],
)
def test_the_chunks_of_month_ends_leap_years_and_week_starts_are_known(
    kind: Literal["hourly", "daily", "weekly", "monthly"], first: str, start: str, end: str, wanted: list[str]
) -> None:
    partitions = TimePartitions(kind=kind, first=first)
    assert list(partitions.between(datetime.fromisoformat(start), datetime.fromisoformat(end))) == wanted


def test_the_last_chunk_of_all_time_is_an_end_and_no_crash() -> None:
    start, end = datetime.fromisoformat("9999-12-30"), datetime.fromisoformat("9999-12-31T23:00")
    days = TimePartitions(kind="daily", first="2024-01-01", last="9999-12-31")
    assert list(days.between(start, end)) == ["9999-12-30", "9999-12-31"]


@pytest.mark.parametrize(
    "partitions",
    [
        daily("2024-01-01", "2024-12-31"),
        hourly("2024-01-01-00:00"),
        static("a"),
        RangePartitions(first=0, last=9, step=5),
    ],
)
def test_partitions_survive_a_round_trip_through_json(partitions: RangePartitions) -> None:
    assert partitions_from_json(partitions.to_json()) == partitions
    with pytest.raises(InvalidDefinition, match="are not partitions"):
        partitions_from_json({"kind": "yearly"})


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda: monthly("2024-03-01", "2024-03-31"),
            "monthly(...): '2024-03-31' is not the first day of a month; a month is written as that day, "
            "this one as '2024-03-01'",
        ),
        (lambda: monthly("2024-3"), "monthly(...): '2024-3' is not a monthly dataid; write '2024-03-01'"),
        (lambda: daily("20240301"), "daily(...): '20240301' is not a daily dataid; write '2024-03-01'"),
        (lambda: daily("2023-02-29"), "daily(...): '2023-02-29' is not in the calendar; use a time that exists"),
        (lambda: weekly("monday"), "weekly(...): 'monday' is not a weekly dataid; use the form 2024-01-01"),
        (
            lambda: hourly("2024-03-01-00:30"),
            "hourly(...): '2024-03-01-00:30' is not a full hour; write '2024-03-01-00:00'",
        ),
        (lambda: hourly("2024-03-01"), "hourly(...): '2024-03-01' is not an hourly dataid; write '2024-03-01-00:00'"),
        (
            lambda: daily(date(2024, 3, 1)),  # type: ignore[arg-type]
            "daily(...): datetime.date(2024, 3, 1) is not text; write it as a string such as '2024-01-01'",
        ),
        (
            lambda: daily("2024-03-02", "2024-03-01"),
            "daily(...): partitions end (2024-03-01) before they start (2024-03-02); swap them",
        ),
        (lambda: static(), "static(...): static partitions need at least one dataid; list them"),
        (lambda: static("a", ""), "static(...): a dataid must not be empty; use at least one visible character"),
        (
            lambda: ranges(5, 1, 1),
            "ranges(...): a range cannot go from 5 to 1 in steps of 1; start at 0 or above, end later, and use steps "
            "of at least 1",
        ),
    ],
)
def test_a_wrong_declaration_names_its_file_and_line_the_mistake_and_the_next_step(
    declare: Callable[[], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    with pytest.raises(InvalidDefinition) as refused:
        declare()

    place, _, said = str(refused.value).partition(": ")
    assert said == message
    file, _, line = place.partition(":")
    assert file == Path(__file__).name
    assert message.partition("(")[0] in Path(__file__).read_text().splitlines()[int(line) - 1]
