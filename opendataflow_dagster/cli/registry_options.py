"""How DataSets and Jobs are written on a command line: partitions, inputs, durations."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput

from .arguments import UNITS

if TYPE_CHECKING:
    from opendataflow_dagster.model.job import Input
    from opendataflow_dagster.model.partitions import Partitions


class Duration(click.ParamType[timedelta]):
    """`30s`, `10min`, `2h`, `1d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        number = str(value).rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = str(value)[len(number) :].strip()
        if not number.isdecimal() or unit not in UNITS or len(number) > 9:
            self.fail(f"{value!r} is no duration; write it like 30s, 10min, 2h or 1d", param, ctx)
        return timedelta(seconds=int(number) * UNITS[unit])


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
        case "range" if len(numbers := rest.split(":")) == 3 and all(one.isdecimal() for one in numbers):
            first, last, step = map(int, numbers)
            return RangePartitions(first=first, last=last, step=step)
        case "daily" | "weekly" | "monthly":
            begin, _, end = rest.partition(":")
            return TimePartitions(kind=kind, first=begin, last=end or None)
        case "hourly":
            # An hourly dataid has a colon of its own.
            bounds = rest.split("/")
            return TimePartitions(kind=kind, first=bounds[0], last=bounds[1] if len(bounds) > 1 else None)
    raise InvalidInput(
        f"{text!r} are no partitions; write daily:2024-01-01, monthly:2024-01-01:2024-12-01, "
        f"hourly:2024-01-01-00:00/2024-12-31-23:00, static:a,b,c, range:0:999:100 or any"
    )


def parse_input(text: str) -> Input:
    """`flights`, or `codes:all`."""
    from opendataflow_dagster.model.ids import dataset_id
    from opendataflow_dagster.model.job import Input
    from opendataflow_dagster.model.registry import mapping_of_kind

    name, colon, kind = text.rpartition(":")
    if colon and kind in ("equal", "listed", "all"):
        return Input(datasetid=dataset_id(name), mapping=mapping_of_kind(kind))
    return Input(datasetid=dataset_id(text))


def parse_variable(text: str) -> tuple[str, str | None]:
    """`NAME=VALUE`; `NAME` alone unsets it."""
    name, equals, value = text.partition("=")
    return name, value if equals else None
