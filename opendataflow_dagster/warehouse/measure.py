"""What Spark computes while it writes a version: the row count, the digest and the figures of its checks.

All of it is one struct in one SQL text: one Observation, one parse, one answer. The text is cached, because thousands
of chunks share their schema and checks. A check that groups rows takes a second pass over what was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from ..model.check import GROUP_ROWS, Check
from ..model.errors import InvalidDefinition
from ..model.literals import quoted
from .digest import digest_metrics
from .failures import cause
from .schema import plain, schema_hash

#: The name of the struct.
MEASURES = "measures"


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    #: As it comes back from Parquet.
    schema: StructType
    schema_hash: str
    expression: str


def measures_of(schema: StructType, checks: Sequence[Check]) -> Measures:
    return _measures(schema.json(), tuple(() if check.group_by else check.aggregates for check in checks))


@lru_cache(maxsize=1000)
def _measures(schema_json: str, aggregates: tuple[tuple[str, ...], ...]) -> Measures:
    schema: StructType = StructType.fromJson(json.loads(schema_json))
    metrics = {"rows": "count(1)", **digest_metrics(schema)}
    metrics |= {f"c{place}": _struct(each) for place, each in enumerate(aggregates) if each}
    fields = ", ".join(f"'{name}', {aggregate}" for name, aggregate in metrics.items())
    return Measures(
        schema=plain(schema), schema_hash=schema_hash(schema), expression=f"named_struct({fields}) as {MEASURES}"
    )


def values_of(
    metrics: Mapping[str, Any], checks: Sequence[Check], written: DataFrame | None
) -> tuple[tuple[Any, ...], ...]:
    """The figures of each check. `written` is read for the checks that group rows."""
    values: list[tuple[Any, ...]] = []
    for place, check in enumerate(checks):
        if check.group_by and written is not None:
            values.append(_grouped(written, check))
        else:
            values.append(tuple(metrics[f"c{place}"]) if check.aggregates else ())
    return tuple(values)


def refuse_invalid_checks(frame: DataFrame, checks: Sequence[Check], chunk: str) -> None:
    """Of the checks whose SQL Spark refused together, name the one at fault."""
    for check in checks:
        if check.aggregates and not check.group_by:
            try:
                _ = frame.selectExpr("count(1)", _struct(check.aggregates)).schema
            except (AnalysisException, ParseException) as error:
                raise _invalid(check, chunk, error) from error


def _struct(aggregates: Sequence[str]) -> str:
    fields = ", ".join(f"'v{number}', {aggregate}" for number, aggregate in enumerate(aggregates))
    return f"named_struct({fields})"


def _grouped(written: DataFrame, check: Check) -> tuple[Any, ...]:
    try:
        groups = written.groupBy(*(quoted(name) for name in check.group_by)).agg(expr(f"count(1) as {GROUP_ROWS}"))
        (row,) = groups.agg(expr(f"{_struct(check.aggregates)} as {MEASURES}")).collect()
    except (AnalysisException, ParseException) as error:
        raise _invalid(check, "the written rows", error) from error
    return tuple(row[MEASURES])


def _invalid(check: Check, what: str, error: Exception) -> InvalidDefinition:
    return InvalidDefinition(f"{what}: Spark cannot evaluate check {check.name}: {cause(error)}; correct the check")
