"""What is measured of a version while it is written, and what the figures say of its checks.

All measures are aggregates of one struct, written as one SQL text: one Observation, one parse, one answer. The text is
kept for each schema and its checks, because thousands of chunks share them. `unique` cannot be added up; parquet.py
asks it in a pass of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, assert_never

from pyspark.sql.types import StructType

from ..model.checks import Accepted, Between, Check, Fresh, Holds, LikePrevious, Matches, NotNull, RowCount, Unique
from ..model.errors import InvalidDefinition
from ..model.manifest import CheckResult
from .digest import content_digest, digest_metrics
from .literals import column, literal, text
from .schema import plain, schema_hash

#: The name of the one measure, a struct of all.
MEASURES = "measures"

# Enough of an offending value to find it by.
_EXAMPLE = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """Schema and checks as Spark is asked about them."""

    schema: StructType
    schema_hash: str
    checks: tuple[Check, ...]
    expression: str

    def content_digest(self, metrics: Mapping[str, Any]) -> str | None:
        return content_digest(self.schema_hash, metrics["rows"], metrics)

    def results(self, metrics: Mapping[str, Any], previous_rows: int | None) -> dict[Check, CheckResult]:
        now = datetime.now(UTC)
        found: dict[Check, CheckResult] = {}
        for place, check in enumerate(self.checks):
            if isinstance(check, Unique):
                continue
            values = [metrics[f"c{place}_{number}"] for number in range(len(_aggregates(check)))]
            wrong, said = _judged(check, values, metrics["rows"], previous_rows, now)
            found[check] = CheckResult(name=check.name, passed=not wrong, detail=said)
        return found


def measured(schema: StructType, checks: Sequence[Check]) -> Measured:
    return _measured(schema.json(), tuple(checks))


@lru_cache(maxsize=1000)
def _measured(schema_json: str, checks: tuple[Check, ...]) -> Measured:
    schema: StructType = StructType.fromJson(json.loads(schema_json))
    for check in checks:
        refuse_unknown_columns(check, schema)
    metrics = {"rows": "count(1)", **digest_metrics(schema)}
    for place, check in enumerate(checks):
        metrics |= {f"c{place}_{number}": of for number, of in enumerate(_aggregates(check))}
    listed = ", ".join(f"'{name}', {of}" for name, of in metrics.items())
    return Measured(
        schema=plain(schema),
        schema_hash=schema_hash(schema),
        checks=checks,
        expression=f"named_struct({listed}) as {MEASURES}",
    )


def check_expression(check: Check) -> str | None:
    """One check alone: to find the one that Spark does not understand."""
    listed = ", ".join(f"'m{number}', {of}" for number, of in enumerate(_aggregates(check)))
    return f"named_struct({listed})" if listed else None


def refuse_unknown_columns(check: Check, schema: StructType) -> None:
    names = {name.lower() for name in schema.names}
    if unknown := [name for name in _columns(check) if name.lower() not in names]:
        raise InvalidDefinition(
            f"the check {check.name} is about {', '.join(unknown)}, which is not among the columns "
            f"({', '.join(schema.names[:20])}{', ...' if len(schema.names) > 20 else ''}); correct the check"
        )


def _columns(check: Check) -> tuple[str, ...]:
    match check:
        case NotNull() | Unique():
            return check.columns
        case Accepted() | Between() | Matches() | Fresh():
            return (check.column,)
        case RowCount() | LikePrevious() | Holds():
            return ()
        case _:
            assert_never(check)


def _aggregates(check: Check) -> list[str]:
    match check:
        case RowCount() | LikePrevious() | Unique():
            return []
        case NotNull():
            return [f"count_if(isnull({column(name)}))" for name in check.columns]
        case Accepted():
            values = ", ".join(literal(one) for one in check.values)
            return _offending(check.column, f"{column(check.column)} not in ({values})")
        case Between():
            bounds = f"{literal(check.low)} and {literal(check.high)}"
            return _offending(check.column, f"{column(check.column)} not between {bounds}")
        case Matches():
            return _offending(check.column, f"not {column(check.column)} rlike {text(check.regex)}")
        case Fresh():
            return [f"unix_micros(max(cast({column(check.column)} as timestamp)))"]
        case Holds():
            # On lines of its own, because it may end with a comment.
            return [f"count_if(not coalesce((\n{check.sql_expression}\n), false))"]
        case _:
            assert_never(check)


def _offending(name: str, wrong: str) -> list[str]:
    """How many values, and one of them."""
    example = f"substring(cast({column(name)} as string), 1, {_EXAMPLE})"
    return [f"count_if({wrong})", f"min(case when {wrong} then {example} end)"]


def _judged(
    check: Check, values: Sequence[Any], rows: int, previous_rows: int | None, now: datetime
) -> tuple[bool, str]:
    """Is something wrong, and the figures in words."""
    match check:
        case RowCount():
            low, high = check.minimum or 0, check.maximum
            wanted = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
            return rows < low or (high is not None and rows > high), f"{_rows(rows)}, wanted are {wanted}"
        case NotNull():
            nulls = {name: bad for name, bad in zip(check.columns, values, strict=True) if bad}
            said = "; ".join(f"{name} is null in {bad:,} of {_rows(rows)}" for name, bad in nulls.items())
            return bool(nulls), said or f"null in none of {_rows(rows)}"
        case Accepted() | Between() | Matches():
            bad, example = values
            return bad > 0, f"{bad:,} of {_rows(rows)} are not" + (f", for example {example!r}" if bad else "")
        case Fresh():
            if values[0] is None:
                return True, f"{check.column} has no time in {_rows(rows)}"
            newest = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=values[0])
            said = f"the newest of {_rows(rows)} is {newest:%Y-%m-%d %H:%M:%S} UTC, {_age(now - newest)}"
            return newest < now - check.within, said
        case LikePrevious():
            if not previous_rows:
                return False, f"{_rows(rows)}, and no rows before to compare with"
            share = (rows - previous_rows) / previous_rows
            return abs(share) > check.rows_within, f"{_rows(rows)}, before were {previous_rows:,} ({share:+.1%})"
        case Holds():
            return values[0] > 0, f"{values[0]:,} of {_rows(rows)} are not"
        case Unique():
            raise AssertionError("unique is not among the measures")
        case _:
            assert_never(check)


def _rows(number: int) -> str:
    return f"{number:,} row{'' if number == 1 else 's'}"


def _age(age: timedelta) -> str:
    return f"{timedelta(seconds=round(age.total_seconds()))} ago" if age >= timedelta(0) else "in the future"
