"""Columns and their types: one hash for each schema, and what two of them have against each other."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

# What Spark reads from Parquet as the wider type, without loss.
_WIDER: dict[type[DataType], tuple[type[DataType], ...]] = {
    ByteType: (ShortType, IntegerType, LongType),
    ShortType: (IntegerType, LongType),
    IntegerType: (LongType,),
    FloatType: (DoubleType,),
}


def schema_hash(schema: StructType) -> str:
    """Names and types in order. Comments and other metadata do not count, nor does nullability: Parquet files that
    Spark has written are nullable throughout; declare `not_null` where it matters."""
    said = json.dumps(_without_metadata(plain(schema).jsonValue()), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def plain(schema: StructType) -> StructType:
    """The schema as it comes back from Parquet: nullable throughout, without metadata."""
    return StructType([StructField(one.name, _plain(one.dataType)) for one in schema.fields])


def repeated(schema: StructType) -> list[str]:
    """Names that occur twice to a reader who does not tell capital letters apart, as Spark does not."""
    count = Counter(name.lower() for name in schema.names)
    return [name for name in schema.names if count[name.lower()] > 1]


def differences(found: StructType, declared: StructType) -> list[str]:
    """What speaks against calling the one the other, in words; the order of columns does not."""
    have = {one.name: _plain(one.dataType) for one in found.fields}
    want = {one.name: _plain(one.dataType) for one in declared.fields}
    return [
        *(f"column {name} is missing ({_said(of)})" for name, of in want.items() if name not in have),
        *(f"column {name} ({_said(of)}) is not declared" for name, of in have.items() if name not in want),
        *(
            f"column {name} is {_said(have[name])}, declared is {_said(of)}"
            for name, of in want.items()
            if name in have and have[name] != of
        ),
    ]


def unreadable(stored: StructType, wanted: StructType) -> list[str]:
    """Columns of a stored version that cannot be read as this schema has them. One that it lacks is read as null."""
    have = {one.name: one.dataType for one in plain(stored).fields}
    return [
        f"column {one.name} is {_said(have[one.name])}, wanted is {_said(one.dataType)}"
        for one in plain(wanted).fields
        if one.name in have and not _reads_as(have[one.name], one.dataType)
    ]


def _plain(of: DataType) -> DataType:
    match of:
        case StructType():
            return plain(of)
        case ArrayType():
            return ArrayType(_plain(of.elementType))
        case MapType():
            return MapType(_plain(of.keyType), _plain(of.valueType))
        case _:
            return of


def _reads_as(stored: DataType, wanted: DataType) -> bool:
    match stored, wanted:
        case StructType(), StructType():
            return not unreadable(stored, wanted)
        case ArrayType(), ArrayType():
            return _reads_as(stored.elementType, wanted.elementType)
        case MapType(), MapType():
            return _reads_as(stored.keyType, wanted.keyType) and _reads_as(stored.valueType, wanted.valueType)
        case _:
            return stored == wanted or type(wanted) in _WIDER.get(type(stored), ())


def _without_metadata(value: object) -> object:
    match value:
        case dict():
            return {key: _without_metadata(one) for key, one in value.items() if key not in ("metadata", "nullable")}
        case list():
            return [_without_metadata(one) for one in value]
        case _:
            return value


def _said(of: DataType) -> str:
    text = of.simpleString()
    return text if len(text) <= 100 else f"{text[:100]}..."
