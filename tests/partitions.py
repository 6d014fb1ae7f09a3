"""Hypothesis strategies for the partitions of a DataSet."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from hypothesis import strategies as st

from opendataflow_dagster.model.ids import DataId
from opendataflow_dagster.model.partitions import Partitions, RangePartitions, StaticPartitions, TimePartitions

KINDS: tuple[Literal["hourly", "daily", "weekly", "monthly"], ...] = ("hourly", "daily", "weekly", "monthly")


BORDERS = [
    datetime.fromisoformat(day)
    for day in (
        "0001-01-01",
        "0999-12-31",
        "1900-02-28",
        "1999-12-31",
        "2000-02-28",
        "2023-02-28",
        "2024-02-28",
        "2024-12-30",
        "9999-12-31",
    )
]


def times() -> st.SearchStrategy[datetime]:
    near = st.builds(lambda border, hours: shifted(border, hours), st.sampled_from(BORDERS), st.integers(-800, 800))
    return near | st.datetimes().map(lambda time: time.replace(minute=0, second=0, microsecond=0))


def shifted(time: datetime, hours: int) -> datetime:
    try:
        return time + timedelta(hours=hours)
    except OverflowError:
        return time


def text_of(kind: str, time: datetime) -> str:
    day = time.date().replace(day=1) if kind == "monthly" else time.date()
    return f"{day.isoformat()}-{time:%H}:00" if kind == "hourly" else day.isoformat()


@st.composite
def time_partitions(draw: st.DrawFn) -> TimePartitions:
    kind = draw(st.sampled_from(KINDS))
    first, last = sorted(text_of(kind, draw(times())) for _ in range(2))
    return TimePartitions(kind=kind, first=first, last=draw(st.sampled_from([last, None])))


@st.composite
def range_partitions(draw: st.DrawFn) -> RangePartitions:
    numbers = st.integers(0, 30) | st.integers(0, 10**18 - 1) | st.integers(10**18 - 30, 10**18 - 1)
    first, last = sorted((draw(numbers), draw(numbers)))
    return RangePartitions(first=first, last=last, step=draw(st.integers(1, 12) | st.integers(1, 10**18 - 1)))


def static_partitions() -> st.SearchStrategy[StaticPartitions]:
    keys = st.lists(st.sampled_from(["a", "b", "A", " a", "é", "%s", '"', "\\"]), min_size=1)
    return keys.map(lambda found: StaticPartitions(keys=tuple(DataId(key) for key in found)))


@st.composite
def near_dataids(draw: st.DrawFn, partitions: Partitions) -> str:
    """A dataid that the partitions have, nearly have, or do not have at all."""
    match partitions:
        case TimePartitions():
            bound = partitions.time_of(partitions.last if partitions.last and draw(st.booleans()) else partitions.first)
            time = draw(times() | st.integers(-800, 800).map(lambda hours: shifted(bound, hours)) | st.just(bound))
            text = text_of(draw(st.sampled_from([partitions.kind, *KINDS])), time)
        case RangePartitions():
            count = (partitions.last - partitions.first) // partitions.step
            number = draw(st.sampled_from([0, 1, count - 1, count, count + 1]) | st.integers(0, count))
            low = max(0, partitions.first + number * partitions.step + draw(st.sampled_from([0, 0, 0, 1, -1])))
            high = max(0, min(low + partitions.step - 1, partitions.last) + draw(st.sampled_from([0, 0, 0, 1, -1])))
            text = draw(st.sampled_from([f"{low}-{high}", f"{low}", f"0{low}-{high}", f"{low}-{high}0"]))
        case StaticPartitions():
            text = draw(st.sampled_from([*partitions.keys, "a", "b", "A", "c"]))
    spoilt = [
        "2024-02-30",
        "2024-00-01",
        "2024-13-01",
        "2024-1-1",
        "20240101",
        "0000-01-01",
        "٢٠٢٤-01-01",
        "0-",
        "-0",
        "x",
    ]
    edited = st.sampled_from(
        [text + " ", " " + text, text + "\u00a0", text[:-1], text.replace("0", "１", 1), text + "0"]
    )
    return draw(st.just(text) | st.just(text) | edited.filter(bool) | st.sampled_from(spoilt))
