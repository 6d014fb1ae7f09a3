"""The checks that come with the framework. All with severity `error` must pass before a version is published.

Nulls pass `accepted`, `between` and `matches`, as in SQL; use `not_null` to refuse them. `check` says how to add one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from .check import GROUP_ROWS, Check, Figures, Severity
from .errors import InvalidDefinition
from .literals import Scalar, literal, quoted, text
from .text import counted

# Enough of a failing value to find it by.
_EXAMPLE_LENGTH = 60


@dataclass(frozen=True, kw_only=True)
class RowCount(Check):
    minimum: int | None
    maximum: int | None

    def judge(self, figures: Figures) -> tuple[bool, str]:
        low, high = self.minimum or 0, self.maximum
        expected = f"at least {low:,}" if high is None else f"{low:,}" if low == high else f"{low:,} to {high:,}"
        passed = low <= figures.rows and (high is None or figures.rows <= high)
        return passed, f"{counted(figures.rows, 'row')}, expected {expected}"


def row_count(minimum: int | None = None, maximum: int | None = None, *, severity: Severity = "error") -> RowCount:
    """The version has at least `minimum` and at most `maximum` rows."""
    for bound in (minimum, maximum):
        if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 0):
            raise InvalidDefinition(f"row_count: {bound!r} is not a number of rows; pass 0 or more")
    if minimum is None and maximum is None:
        raise InvalidDefinition("row_count has neither a minimum nor a maximum; pass at least one")
    if minimum is not None and maximum is not None and maximum < minimum:
        raise InvalidDefinition(f"row_count: the minimum {minimum} is above the maximum {maximum}; swap them")
    return RowCount(name="row_count", minimum=minimum, maximum=maximum, severity=severity)


@dataclass(frozen=True, kw_only=True)
class NotNull(Check):
    def judge(self, figures: Figures) -> tuple[bool, str]:
        nulls = {name: count for name, count in zip(self.columns, figures.values, strict=True) if count}
        rows = counted(figures.rows, "row")
        detail = "; ".join(f"{name} is null in {count:,} of {rows}" for name, count in nulls.items())
        return not nulls, detail or f"no nulls in {rows}"


def not_null(*columns: str, severity: Severity = "error") -> NotNull:
    """None of these columns is ever null."""
    names = _columns("not_null", columns)
    counts = tuple(f"count_if(isnull({quoted(name)}))" for name in names)
    return NotNull(name=f"not_null({', '.join(names)})", columns=names, aggregates=counts, severity=severity)


@dataclass(frozen=True, kw_only=True)
class Unique(Check):
    def judge(self, figures: Figures) -> tuple[bool, str]:
        keys, rows, example = figures.values
        if not keys:
            return True, f"{counted(figures.rows, 'row')}, no repeated key"
        repeated = f"{counted(keys, 'repeated key')}, e.g. {_shown(example)}"
        return False, f"{rows:,} of {counted(figures.rows, 'row')} fail {self.name}: {repeated}"


def unique(*columns: str, severity: Severity = "error") -> Unique:
    """No two rows have equal values in all these columns. Rows with a null among them are not compared, as in SQL."""
    names = _columns("unique", columns)
    repeated = " and ".join([f"{GROUP_ROWS} > 1", *(f"{quoted(name)} is not null" for name in names)])
    example = f"concat_ws(', ', {', '.join(_example(name) for name in names)})"
    return Unique(
        name=f"unique({', '.join(names)})",
        columns=names,
        group_by=names,
        aggregates=(
            f"count_if({repeated})",
            f"sum(case when {repeated} then {GROUP_ROWS} end)",
            f"min(case when {repeated} then {example} end)",
        ),
        severity=severity,
    )


@dataclass(frozen=True, kw_only=True)
class EveryValue(Check):
    """Every value of one column satisfies a condition: `accepted`, `between`, `matches`."""

    def judge(self, figures: Figures) -> tuple[bool, str]:
        failing, example = figures.values
        return not failing, _failing(failing, figures.rows, self.name, f", e.g. {_shown(example)}")


def accepted(column: str, values: Iterable[Scalar], *, severity: Severity = "error") -> EveryValue:
    """The column has one of these values."""
    (name,) = _columns("accepted", (column,))
    if isinstance(values, str | bytes):
        raise InvalidDefinition(f"accepted({name}): {values!r} is a single text; pass a list of values")
    listed = tuple(dict.fromkeys(_scalar(f"accepted({name})", value) for value in values))
    if not listed:
        raise InvalidDefinition(f"accepted({name}) accepts nothing; list at least one value")
    condition = f"not in ({', '.join(literal(value) for value in listed)})"
    return _every_value(f"accepted({name})", name, condition, severity)


def between(column: str, low: Scalar, high: Scalar, *, severity: Severity = "error") -> EveryValue:
    """low <= column <= high."""
    (name,) = _columns("between", (column,))
    check = f"between({name})"
    bounds: tuple[Any, Any] = (_scalar(check, low), _scalar(check, high))
    try:
        swapped = bounds[0] > bounds[1]
    except TypeError:
        raise InvalidDefinition(
            f"{check}: {low!r} and {high!r} cannot be compared; pass both bounds in the same type"
        ) from None
    if swapped:
        raise InvalidDefinition(f"{check}: the lower bound {low} is above the upper bound {high}; swap them")
    condition = f"not between {literal(low)} and {literal(high)}"
    return _every_value(f"between({name}, {low}, {high})", name, condition, severity)


def matches(column: str, regex: str, *, severity: Severity = "error") -> EveryValue:
    """The regular expression (Java's, as in Spark's `rlike`) occurs in the column; anchor it with ^ and $."""
    (name,) = _columns("matches", (column,))
    if not isinstance(regex, str) or not regex:
        raise InvalidDefinition(f"matches({name}): {regex!r} is not a regular expression; pass it as text")
    return _every_value(f"matches({name}, {regex})", name, f"not rlike {text(regex)}", severity, ("string",))


@dataclass(frozen=True, kw_only=True)
class Fresh(Check):
    within: timedelta

    def judge(self, figures: Figures) -> tuple[bool, str]:
        (micros,), rows = figures.values, counted(figures.rows, "row")
        if micros is None:
            return False, f"{self.columns[0]} has no value in {rows}"
        newest = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
        seconds = round((figures.now - newest).total_seconds())
        age = f"{timedelta(seconds=seconds)} ago" if seconds >= 0 else "in the future"
        detail = f"the newest {self.columns[0]} in {rows} is {newest:%Y-%m-%d %H:%M:%S} UTC, {age}"
        return figures.now - newest <= self.within, f"{detail} (limit {self.within})"


def fresh(column: str, within: timedelta, *, severity: Severity = "error") -> Fresh:
    """The newest time in the column is at most `within` before the write."""
    (name,) = _columns("fresh", (column,))
    if not isinstance(within, timedelta) or within <= timedelta(0):
        raise InvalidDefinition(f"fresh({name}): {within!r} is not a duration; pass a positive timedelta")
    newest = f"unix_micros(max(cast({quoted(name)} as timestamp)))"
    return Fresh(
        name=f"fresh({name}, {within})",
        columns=(name,),
        column_types=("timestamp", "date"),
        aggregates=(newest,),
        within=within,
        severity=severity,
    )


@dataclass(frozen=True, kw_only=True)
class LikePrevious(Check):
    rows_within: float

    def judge(self, figures: Figures) -> tuple[bool, str]:
        rows, previous = counted(figures.rows, "row"), figures.previous_rows
        if not previous:
            return True, f"{rows}, and no previous rows to compare with"
        change = (figures.rows - previous) / previous
        detail = f"{rows}, previously {previous:,} ({change:+.1%}, limit {self.rows_within:.0%})"
        return abs(change) <= self.rows_within, detail


def like_previous(rows_within: float, *, severity: Severity = "error") -> LikePrevious:
    """The row count differs from that of the nearest earlier chunk by at most this fraction.

    0.2 allows 80 to 120 rows after 100. Without an earlier chunk (the first, or chunks without an order) the chunk's
    own previous version is compared.
    """
    if not isinstance(rows_within, int | float) or isinstance(rows_within, bool) or not 0 <= rows_within < float("inf"):
        raise InvalidDefinition(f"like_previous: {rows_within!r} must be a fraction such as 0.2")
    return LikePrevious(
        name=f"like_previous({rows_within:g})",
        compares_with_previous=True,
        rows_within=float(rows_within),
        severity=severity,
    )


@dataclass(frozen=True, kw_only=True)
class Holds(Check):
    def judge(self, figures: Figures) -> tuple[bool, str]:
        (failing,) = figures.values
        return not failing, _failing(failing, figures.rows, f"'{self.name}'", "")


def holds(name: str, sql_expression: str, *, severity: Severity = "error") -> Holds:
    """The predicate is true (not false, not null) for every row."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidDefinition(f"holds({sql_expression!r}) has no name; pass one that says what must hold")
    if not isinstance(sql_expression, str) or not sql_expression.strip():
        raise InvalidDefinition(f"holds({name!r}) has no predicate; pass a SQL expression over the columns")
    # On lines of its own, because it may end with a comment.
    return Holds(name=name, aggregates=(f"count_if(not coalesce((\n{sql_expression}\n), false))",), severity=severity)


def _every_value(
    check: str, name: str, fails: str, severity: Severity, column_types: tuple[str, ...] = ()
) -> EveryValue:
    """`fails` follows the column in a predicate that is true for failing values, and null for nulls."""
    condition = f"{quoted(name)} {fails}"
    return EveryValue(
        name=check,
        columns=(name,),
        column_types=column_types,
        aggregates=(f"count_if({condition})", f"min(case when {condition} then {_example(name)} end)"),
        severity=severity,
    )


def _example(name: str) -> str:
    return f"substring(cast({quoted(name)} as string), 1, {_EXAMPLE_LENGTH})"


def _failing(failing: int, rows: int, check: str, example: str) -> str:
    if not failing:
        return f"0 of {counted(rows, 'row')} fail"
    return f"{failing:,} of {counted(rows, 'row')} {'fails' if failing == 1 else 'fail'} {check}{example}"


def _shown(example: str) -> str:
    """In quotes only where they are needed to see where the value ends."""
    return example if re.fullmatch(r"[\w.,:+/-]+", example or "") else repr(example)


def _columns(check: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    if not columns:
        raise InvalidDefinition(f"{check} names no column; name at least one")
    for name in columns:
        if not isinstance(name, str) or not name:
            raise InvalidDefinition(f"{check}: {name!r} is not a column name; pass it as text")
    if repeated := sorted({name for name in columns if columns.count(name) > 1}):
        raise InvalidDefinition(f"{check} names the column {', '.join(repeated)} twice; name it once")
    return columns


def _scalar(check: str, value: Scalar) -> Scalar:
    if not isinstance(value, str | int | float | Decimal | date | datetime):
        raise InvalidDefinition(f"{check}: a column cannot be compared with {value!r}; pass text, number, date or time")
    if re.fullmatch("nan|[+-]?inf(inity)?", str(value), re.IGNORECASE) and not isinstance(value, str):
        raise InvalidDefinition(f"{check}: {value} is not a finite number; pass a finite one")
    return value
