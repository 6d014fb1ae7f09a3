"""A digest of the rows of a version that Spark's Observation can add up while they are written.

Each row gives a 64-bit hash (xxhash64 over all columns); the digest is made from the number of rows and the exact sums
of both halves of their hashes. So the order of rows and files does not matter, and a row that is there twice does. It
tells chunks apart and finds the same content again; it is no defence against a forger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import count
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from ..model.literals import quoted, text

# Nothing of a value is lost in its JSON, wherever the session is.
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}


def digest_metrics(schema: StructType) -> dict[str, str]:
    """Names and SQL aggregates. Before each value comes whether it is null: xxhash64 passes over nulls in silence."""
    if not schema.fields:
        return {}
    values = (_hashable(quoted(one.name), one.dataType) for one in schema.fields)
    row = f"xxhash64({', '.join(f'isnull({value}), {value}' for value in values)})"
    # Two sums of whole numbers, with room for two thousand million rows; one of decimals costs a small chunk more.
    return {"high": f"try_sum(shiftright({row}, 32))", "low": f"try_sum({row} & 4294967295L)"}


def content_digest(schema_hash: str, rows: int, metrics: Mapping[str, Any]) -> str | None:
    """None for a version without rows, because two empty chunks do not repeat each other; and for one with too many."""
    sums = [metrics.get(name, 0) for name in ("high", "low")]
    if not rows or None in sums:
        return None
    said = f"{schema_hash}:{rows}:{sums}"
    return f"rows-xxhash64:{hashlib.sha256(said.encode()).hexdigest()[:32]}"


def _hashable(value: str, of: DataType) -> str:
    """xxhash64 knows no maps and does not tell where a nested value ends: those are hashed as JSON."""
    if not isinstance(of, ArrayType | MapType | StructType | VariantType):
        return value
    options = ", ".join(f"{text(name)}, {text(option)}" for name, option in _JSON_OPTIONS.items())
    ordered = _ordered(value, of, count())
    return f"if(isnull({value}), null, to_json(named_struct('v', {ordered}), map({options})))"


def _ordered(value: str, of: DataType, numbers: count[int]) -> str:
    """The same value, its maps as lists in the order of their keys: equal maps may be stored in any order."""
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
                f"{text(one.name)}, {_ordered(f'{value}.{quoted(one.name)}', one.dataType, numbers)}"
                for one in of.fields
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
            return any(_has_map(one.dataType) for one in of.fields)
        case _:
            return False
