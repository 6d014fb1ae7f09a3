"""The checks that a DataSet declares: what must hold of every version before it may be published.

A check is a value; the warehouse measures it while the data is written. Nulls satisfy `accepted`,
`between` and `matches`, as they do in SQL: say `not_null` where they must not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from .errors import InvalidDefinition

#: What a column may be compared with.
Scalar: TypeAlias = str | int | float | bool | Decimal | date | datetime


@dataclass(frozen=True, slots=True)
class RowCount:
    minimum: int | None
    maximum: int | None

    @property
    def name(self) -> str:
        return "row_count"


@dataclass(frozen=True, slots=True)
class NotNull:
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"not_null({', '.join(self.columns)})"


@dataclass(frozen=True, slots=True)
class Unique:
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"unique({', '.join(self.columns)})"


@dataclass(frozen=True, slots=True)
class Accepted:
    column: str
    values: tuple[Scalar, ...]

    @property
    def name(self) -> str:
        return f"accepted({self.column})"


@dataclass(frozen=True, slots=True)
class Between:
    column: str
    low: Scalar
    high: Scalar

    @property
    def name(self) -> str:
        return f"between({self.column}, {self.low}, {self.high})"


@dataclass(frozen=True, slots=True)
class Matches:
    column: str
    regex: str

    @property
    def name(self) -> str:
        return f"matches({self.column}, {self.regex})"


@dataclass(frozen=True, slots=True)
class Fresh:
    column: str
    within: timedelta

    @property
    def name(self) -> str:
        return f"fresh({self.column}, {self.within})"


@dataclass(frozen=True, slots=True)
class LikePrevious:
    rows_within: float

    @property
    def name(self) -> str:
        return f"like_previous({self.rows_within:g})"


@dataclass(frozen=True, slots=True)
class Holds:
    name: str
    sql_expression: str


Check: TypeAlias = RowCount | NotNull | Unique | Accepted | Between | Matches | Fresh | LikePrevious | Holds


def row_count(minimum: int | None = None, maximum: int | None = None) -> RowCount:
    """At least and at most so many rows."""
    for bound in (minimum, maximum):
        if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 0):
            raise InvalidDefinition(f"row_count: {bound!r} is no number of rows; give 0 or more")
    if minimum is None and maximum is None:
        raise InvalidDefinition("row_count has neither a minimum nor a maximum; give at least one")
    if minimum is not None and maximum is not None and maximum < minimum:
        raise InvalidDefinition(f"row_count: no number is at least {minimum} and at most {maximum}; swap them")
    return RowCount(minimum, maximum)


def not_null(*columns: str) -> NotNull:
    """None of these columns is ever null."""
    return NotNull(_columns("not_null", columns))


def unique(*columns: str) -> Unique:
    """No two rows agree in all these columns; rows with a null among them are not compared, as in SQL."""
    return Unique(_columns("unique", columns))


def accepted(column: str, values: Iterable[Scalar]) -> Accepted:
    """The column has one of these values."""
    (name,) = _columns("accepted", (column,))
    if isinstance(values, str | bytes):
        raise InvalidDefinition(f"accepted({name}): {values!r} is one text; give a list of values")
    listed = tuple(dict.fromkeys(_scalar(f"accepted({name})", one) for one in values))
    if not listed:
        raise InvalidDefinition(f"accepted({name}) accepts nothing; list at least one value")
    return Accepted(name, listed)


def between(column: str, low: Scalar, high: Scalar) -> Between:
    """low <= column <= high."""
    (name,) = _columns("between", (column,))
    said = f"between({name})"
    bounds: tuple[Any, Any] = (_scalar(said, low), _scalar(said, high))
    try:
        swapped = bounds[0] > bounds[1]
    except TypeError:
        raise InvalidDefinition(
            f"{said}: {low!r} and {high!r} cannot be compared; give both bounds in the same type"
        ) from None
    if swapped:
        raise InvalidDefinition(f"{said}: nothing is at least {low} and at most {high}; swap them")
    return Between(name, low, high)


def matches(column: str, regex: str) -> Matches:
    """The regular expression (Java's, as in Spark's `rlike`) is found in the column; anchor it with ^ and $."""
    (name,) = _columns("matches", (column,))
    if not isinstance(regex, str) or not regex:
        raise InvalidDefinition(f"matches({name}): {regex!r} is no regular expression; give a text")
    return Matches(name, regex)


def fresh(column: str, within: timedelta) -> Fresh:
    """The newest time in the column is at most so long ago when the version is made."""
    (name,) = _columns("fresh", (column,))
    if not isinstance(within, timedelta) or within <= timedelta(0):
        raise InvalidDefinition(f"fresh({name}): {within!r} is no length of time; give a positive timedelta")
    return Fresh(name, within)


def like_previous(rows_within: float) -> LikePrevious:
    """As many rows as the nearest chunk before it that was made, give or take this share.

    0.2 allows 80 to 120 after 100. Where there is none (the first chunk, chunks without an order), the chunk's own
    version before counts.
    """
    if not isinstance(rows_within, int | float) or isinstance(rows_within, bool) or not 0 <= rows_within < float("inf"):
        raise InvalidDefinition(f"like_previous: {rows_within!r} is no share; give a number such as 0.2 for 20 %")
    return LikePrevious(float(rows_within))


def holds(name: str, sql_expression: str) -> Holds:
    """The predicate is true (not false, not null) for every row."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidDefinition(f"holds({sql_expression!r}) has no name; give one that says what must hold")
    if not isinstance(sql_expression, str) or not sql_expression.strip():
        raise InvalidDefinition(f"holds({name!r}) has no predicate; give a SQL expression over the columns")
    return Holds(name, sql_expression)


def refuse_repeated(checks: Iterable[Check], whose: str) -> None:
    """Two results of one name could not be told apart."""
    names = [one.name for one in checks]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidDefinition(f"{whose} declares the check {', '.join(twice)} twice; keep one, or name them apart")


def _columns(check: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    if not columns:
        raise InvalidDefinition(f"{check} names no column; name at least one")
    for one in columns:
        if not isinstance(one, str) or not one:
            raise InvalidDefinition(f"{check}: {one!r} is no name of a column; give it as text")
    if twice := sorted({one for one in columns if columns.count(one) > 1}):
        raise InvalidDefinition(f"{check} names the column {', '.join(twice)} twice; name it once")
    return columns


def _scalar(check: str, value: Scalar) -> Scalar:
    if not isinstance(value, str | int | float | Decimal | date | datetime):
        raise InvalidDefinition(f"{check}: a column cannot be compared with {value!r}; give text, number, date or time")
    if re.fullmatch("nan|[+-]?inf(inity)?", str(value), re.IGNORECASE) and not isinstance(value, str):
        raise InvalidDefinition(f"{check}: {value} is no number to compare with; give a finite one")
    return value
