"""The dataids of a DataSet, written as Dagster writes its partition keys.

`dataflow.has_dataid` is `has` in the ledger, because a claim is decided inside Postgres.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, TypeAlias

from .errors import InvalidDefinition
from .ids import DataId, data_id
from .partition_errors import at_the_call, wrong_bound
from .text import brief

Json: TypeAlias = dict[str, object]

# Times here have no zone: a dataid is in the time zone of its DataSet.
SOME_TIME: Final = datetime.fromisoformat("2024-01-01")
END_OF_TIME: Final = datetime.fromisoformat("9999-12-31T23:59:59")
#: From short to long.
TIME_KINDS: Final = ("hourly", "daily", "weekly", "monthly")


@dataclass(frozen=True, kw_only=True, slots=True)
class TimePartitions:
    """A chunk for each hour, day, week or month, from `first` to `last` (None: open-ended)."""

    kind: Literal["hourly", "daily", "weekly", "monthly"]
    first: str
    last: str | None = None

    _FORMATS: ClassVar[dict[str, str]] = {"hourly": "%Y-%m-%d-%H:%M"}

    def __post_init__(self) -> None:
        if self.kind not in TIME_KINDS:
            raise InvalidDefinition(f"partitions cannot be {self.kind!r}; use hourly, daily, weekly or monthly")
        for bound in (self.first, self.last):
            try:
                if bound is not None:
                    self.time_of(bound)
            except (ValueError, TypeError):
                raise InvalidDefinition(wrong_bound(self.kind, bound, self._text, SOME_TIME)) from None
        if self.last is not None and self.last < self.first:
            raise InvalidDefinition(f"partitions end ({self.last}) before they start ({self.first}); swap them")

    def has(self, dataid: str) -> bool:
        try:
            time = self.time_of(dataid)
        except ValueError:
            return False
        if dataid < self.first or (self.last is not None and dataid > self.last):
            return False
        return self.kind != "weekly" or (time - self.time_of(self.first)).days % 7 == 0

    def time_of(self, dataid: str) -> datetime:
        """When the chunk begins. Raises ValueError for a dataid of another kind."""
        time = datetime.strptime(dataid, self._format)  # noqa: DTZ007 - see above
        if self._text(time) != dataid or (self.kind == "monthly" and time.day != 1) or time.minute:
            raise ValueError(dataid)
        return time

    def end_of(self, dataid: str) -> datetime:
        time = self.time_of(dataid)
        try:
            match self.kind:
                case "hourly":
                    return time + timedelta(hours=1)
                case "daily":
                    return time + timedelta(days=1)
                case "weekly":
                    return time + timedelta(days=7)
                case "monthly":
                    return (time + timedelta(days=31)).replace(day=1)
        except OverflowError:
            return END_OF_TIME

    def between(self, start: datetime, end: datetime) -> Iterator[DataId]:
        """The existing chunks that begin in [start, end)."""
        dataid = self.first
        if (first := self.time_of(self.first)) < start and self.kind != "monthly":
            step = self.end_of(self.first) - first
            dataid = self._text(first + -((first - start) // step) * step)
        while self.has(dataid) and self.time_of(dataid) < end:
            if self.time_of(dataid) >= start:
                yield DataId(dataid)
            if (following := self.end_of(dataid)) == END_OF_TIME:
                return
            dataid = self._text(following)

    def to_json(self) -> Json:
        return {"kind": self.kind, "first": self.first, "last": self.last}

    def __str__(self) -> str:
        return f"{self.kind} from {self.first}{f' to {self.last}' if self.last is not None else ''}"

    @property
    def _format(self) -> str:
        return self._FORMATS.get(self.kind, "%Y-%m-%d")

    def _text(self, time: datetime) -> str:
        # strftime does not pad the years before 1000.
        return time.strftime(self._format).rjust(len(time.isoformat()[:10]) + (6 if self.kind == "hourly" else 0), "0")


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticPartitions:
    """Exactly these chunks."""

    keys: tuple[DataId, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise InvalidDefinition("static partitions need at least one dataid; list them")
        for key in self.keys:
            data_id(key)

    def has(self, dataid: str) -> bool:
        return dataid in self.keys

    def to_json(self) -> Json:
        return {"kind": "static", "keys": list(self.keys)}


@dataclass(frozen=True, kw_only=True, slots=True)
class RangePartitions:
    """The numbers from `first` to `last`, `step` of them in a chunk: `0-999`, `1000-1999`, ..."""

    first: int
    last: int
    step: int

    _PATTERN: ClassVar[re.Pattern[str]] = re.compile("(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})")

    def __post_init__(self) -> None:
        if not (0 <= self.first <= self.last < 10**18 and 1 <= self.step < 10**18):
            raise InvalidDefinition(
                f"a range cannot go from {brief(self.first)} to {brief(self.last)} in steps of {brief(self.step)}; "
                f"start at 0 or above, end later, and use steps of at least 1"
            )

    def has(self, dataid: str) -> bool:
        if not (bounds := self._PATTERN.fullmatch(dataid)):
            return False
        low, high = int(bounds[1]), int(bounds[2])
        return (
            self.first <= low <= self.last
            and (low - self.first) % self.step == 0
            and high == min(low + self.step - 1, self.last)
        )

    def all(self) -> Iterator[DataId]:
        for low in range(self.first, self.last + 1, self.step):
            yield DataId(f"{low}-{min(low + self.step - 1, self.last)}")

    def to_json(self) -> Json:
        return {"kind": "range", "first": self.first, "last": self.last, "step": self.step}


Partitions: TypeAlias = TimePartitions | StaticPartitions | RangePartitions


def daily(first: str, last: str | None = None) -> TimePartitions:
    with at_the_call("daily(...)"):
        return TimePartitions(kind="daily", first=first, last=last)


def hourly(first: str, last: str | None = None) -> TimePartitions:
    with at_the_call("hourly(...)"):
        return TimePartitions(kind="hourly", first=first, last=last)


def weekly(first: str, last: str | None = None) -> TimePartitions:
    with at_the_call("weekly(...)"):
        return TimePartitions(kind="weekly", first=first, last=last)


def monthly(first: str, last: str | None = None) -> TimePartitions:
    with at_the_call("monthly(...)"):
        return TimePartitions(kind="monthly", first=first, last=last)


def static(*keys: str) -> StaticPartitions:
    with at_the_call("static(...)"):
        return StaticPartitions(keys=tuple(DataId(key) for key in keys))


def partitions_from_json(value: Mapping[str, Any]) -> Partitions:
    """The inverse of `to_json`."""
    match value:
        case {"kind": "static", "keys": list() as keys}:
            return StaticPartitions(keys=tuple(keys))
        case {"kind": "range", "first": int() as first, "last": int() as last, "step": int() as step}:
            return RangePartitions(first=first, last=last, step=step)
        case {"kind": "hourly" | "daily" | "weekly" | "monthly" as kind, "first": str() as begin}:
            return TimePartitions(kind=kind, first=begin, last=value.get("last"))
    raise InvalidDefinition(
        f"{brief(dict(value))} are not partitions; use the form {daily('2024-01-01').to_json()!r}, "
        f"or kind hourly, weekly, monthly, static (keys) or range (first, last, step)"
    )


def ranges(first: int, last: int, step: int) -> RangePartitions:
    with at_the_call("ranges(...)"):
        return RangePartitions(first=first, last=last, step=step)


def keys_until(partitions: Partitions, now: datetime) -> tuple[DataId, ...]:
    """All chunks; of time partitions, those that have ended by `now`, as in Dagster."""
    match partitions:
        case StaticPartitions():
            return partitions.keys
        case RangePartitions():
            return tuple(partitions.all())
        case TimePartitions(first=first):
            begun = partitions.between(partitions.time_of(first), now)
            return tuple(dataid for dataid in begun if partitions.end_of(dataid) <= now)


def previous_key(partitions: Partitions | None, dataid: str) -> DataId | None:
    """The chunk before this one; None: it is the first, or the chunks have no order."""
    match partitions:
        case None:
            return None
        case StaticPartitions(keys=keys):
            place = keys.index(DataId(dataid)) if dataid in keys else 0
            return keys[place - 1] if place else None
        case RangePartitions():
            low = int(dataid.partition("-")[0]) - partitions.step
            return DataId(f"{low}-{low + partitions.step - 1}") if low >= partitions.first else None
        case TimePartitions():
            time = partitions.time_of(dataid)
            longest = timedelta(days=31) if partitions.kind == "monthly" else partitions.end_of(dataid) - time
            before = list(partitions.between(time - longest, time))
            return before[-1] if before else None
