"""Values as people type them: numbers, times, durations, partitions, inputs and variables."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from opendataflow_dagster.model.errors import InvalidInput

if TYPE_CHECKING:
    from opendataflow_dagster.model.job import Input
    from opendataflow_dagster.model.partitions import Partitions

_UNITS: Final = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400}


def _seconds(text: str) -> int | None:
    """`10min` is 600; None: not a number with a unit."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(number) :].strip()
    return int(number) * _UNITS[unit] if number.isdecimal() and unit in _UNITS and len(number) <= 9 else None


class Number(click.FloatRange):
    """0 or more, and finite: click's own range accepts `nan`."""

    def __init__(self, *, min: float = 0, min_open: bool = False, max: float) -> None:
        super().__init__(min=min, max=max, min_open=min_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return float(number)


class Moment(click.ParamType[datetime]):
    """`2024-01-05`, `2024-01-05 14:00` (local time), or how long ago: `30min`, `3h`, `2d`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        text = str(value).strip()
        try:
            if (seconds := _seconds(text)) is not None:
                # Whole seconds, so that a suggested command can repeat the time exactly.
                return datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=seconds)
            return datetime.fromisoformat(text).astimezone()
        except (ValueError, OverflowError):
            self.fail(
                f"{text!r} is not a valid time; use a date (2024-01-05), a local time ('2024-01-05 14:00') "
                f"or an age (3h)",
                param,
                ctx,
            )


class Duration(click.ParamType[timedelta]):
    """`30s`, `10min`, `2h`, `1d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        if (seconds := _seconds(str(value))) is None:
            self.fail(f"{value!r} is not a valid duration; use a value such as 30s, 10min, 2h or 1d", param, ctx)
        return timedelta(seconds=seconds)


class Concurrency(click.ParamType[int | None]):
    """A number of chunks, or `none` for no limit."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if str(value) == "none":
            return None
        if not str(value).isdecimal():
            self.fail(f"{value!r} is not a number of chunks; use a number, or none for no limit", param, ctx)
        return int(value)


def parse_partitions(text: str) -> Partitions | None:
    """`daily:2024-01-01`, `daily:2024-01-01:2024-12-31`, `static:a,b,c`, `range:0:999:100`; `any`: no partitions."""
    from opendataflow_dagster.model.ids import DataId
    from opendataflow_dagster.model.partitions import RangePartitions, StaticPartitions, TimePartitions

    kind, _, rest = text.partition(":")
    match kind:
        case "any" if not rest:
            return None
        case "static":
            return StaticPartitions(keys=tuple(DataId(key) for key in rest.split(",") if key))
        case "range" if len(numbers := rest.split(":")) == 3 and all(number.isdecimal() for number in numbers):
            first, last, step = map(int, numbers)
            return RangePartitions(first=first, last=last, step=step)
        case "daily" | "weekly" | "monthly":
            begin, _, end = rest.partition(":")
            return TimePartitions(kind=kind, first=begin, last=end or None)
        case "hourly":
            # An hourly dataid contains a colon itself.
            bounds = rest.split("/")
            return TimePartitions(kind=kind, first=bounds[0], last=bounds[1] if len(bounds) > 1 else None)
    raise InvalidInput(
        f"{text!r} is not a valid partition scheme; use daily:2024-01-01, monthly:2024-01-01:2024-12-01, "
        f"hourly:2024-01-01-00:00/2024-12-31-23:00, static:a,b,c, range:0:999:100 or any"
    )


def parse_input(text: str) -> Input:
    """`flights`, or `codes:all`."""
    from opendataflow_dagster.model.definition import mapping
    from opendataflow_dagster.model.ids import dataset_id
    from opendataflow_dagster.model.job import Input

    name, colon, kind = text.rpartition(":")
    if colon and kind in ("equal", "listed", "all"):
        return Input(datasetid=dataset_id(name), mapping=mapping(kind))
    return Input(datasetid=dataset_id(text))


def parse_variable(text: str) -> tuple[str, str | None]:
    """`NAME=VALUE`; `NAME` alone unsets it."""
    name, equals, value = text.partition("=")
    return name, value if equals else None
