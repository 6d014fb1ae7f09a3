"""A digest of the rows of a version, which Spark's Observation adds up while they are written.

Each row has a 64-bit hash (xxhash64 over all columns). The digest combines the row count and the exact sums of both
halves of the hashes, so the order of rows and files does not matter, and a duplicate row does. It detects repeated
content; it is not cryptographic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import count
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from ..model.literals import quoted, text

# The JSON of a value is lossless and independent of the session.
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}


def digest_metrics(schema: StructType) -> dict[str, str]:
    """Names and SQL aggregates. A flag before each value says whether it is null, because xxhash64 ignores nulls."""
    if not schema.fields:
        return {}
    values = (hashable(quoted(field.name), field.dataType) for field in schema.fields)
    row = f"xxhash64({', '.join(f'isnull({value}), {value}' for value in values)})"
    # Two sums of integers hold two billion rows; a single sum of decimals is slower for small chunks.
    return {"high": f"try_sum(shiftright({row}, 32))", "low": f"try_sum({row} & 4294967295L)"}


def content_digest(schema_hash: str, rows: int, metrics: Mapping[str, Any]) -> str | None:
    """None for a version without rows, because two empty chunks are not repetitions, and for one with too many."""
    sums = [metrics.get(name, 0) for name in ("high", "low")]
    if not rows or None in sums:
        return None
    summary = f"{schema_hash}:{rows}:{sums}"
    return f"rows-xxhash64:{hashlib.sha256(summary.encode()).hexdigest()[:32]}"


def hashable(value: str, of: DataType) -> str:
    """xxhash64 does not support maps, nor mark where a nested value ends, so these are hashed as JSON."""
    if not isinstance(of, ArrayType | MapType | StructType | VariantType):
        return value
    options = ", ".join(f"{text(name)}, {text(option)}" for name, option in _JSON_OPTIONS.items())
    ordered = _ordered(value, of, count())
    return f"if(isnull({value}), null, to_json(named_struct('v', {ordered}), map({options})))"


def _ordered(value: str, of: DataType, numbers: count[int]) -> str:
    """The same value with its maps as lists in key order: equal maps may be stored in any order."""
    match of:
        case _ if not _has_map(of):
            return value
        case ArrayType():
            name = f"x{next(numbers)}"
            return f"transform({value}, {name} -> {_ordered(name, of.elementType, numbers)})"
        case MapType():
            name = f"x{next(numbers)}"
            entry = f"named_struct('k', {name}, 'v', {_ordered(f'{value}[{name}]', of.valueType, numbers)})"
            return f"transform(array_sort(map_keys({value})), {name} -> {entry})"
        case StructType():
            fields = (
                f"{text(field.name)}, {_ordered(f'{value}.{quoted(field.name)}', field.dataType, numbers)}"
                for field in of.fields
            )
            return f"if(isnull({value}), null, named_struct({', '.join(fields)}))"
        case _:
            return value


def _has_map(of: DataType) -> bool:
    match of:
        case MapType():
            return True
        case ArrayType():
            return _has_map(of.elementType)
        case StructType():
            return any(_has_map(field.dataType) for field in of.fields)
        case _:
            return False
