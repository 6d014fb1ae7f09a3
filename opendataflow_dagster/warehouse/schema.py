"""Columns and their types: a hash for each schema, and the differences between two."""

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

# The types that Spark reads from Parquet as a wider one, without loss.
_WIDER: dict[type[DataType], tuple[type[DataType], ...]] = {
    ByteType: (ShortType, IntegerType, LongType),
    ShortType: (IntegerType, LongType),
    IntegerType: (LongType,),
    FloatType: (DoubleType,),
}


def schema_hash(schema: StructType) -> str:
    """Of names and types, in order. Metadata such as comments does not count, nor does nullability, because all columns
    of Spark's Parquet files are nullable; use `not_null` where it matters."""
    text = json.dumps(_without_metadata(plain(schema).jsonValue()), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def plain(schema: StructType) -> StructType:
    """The schema as it comes back from Parquet: nullable throughout, without metadata."""
    return StructType([StructField(field.name, _plain(field.dataType)) for field in schema.fields])


def repeated(schema: StructType) -> list[str]:
    """Names that occur twice when case is ignored, as Spark does."""
    count = Counter(name.lower() for name in schema.names)
    return [name for name in schema.names if count[name.lower()] > 1]


def differences(found: StructType, declared: StructType) -> list[str]:
    """In words; the order of columns does not matter."""
    actual = {field.name: _plain(field.dataType) for field in found.fields}
    expected = {field.name: _plain(field.dataType) for field in declared.fields}
    return [
        *(f"column {name} is missing ({_shown(of)})" for name, of in expected.items() if name not in actual),
        *(f"column {name} ({_shown(of)}) is not declared" for name, of in actual.items() if name not in expected),
        *(
            f"column {name} is {_shown(actual[name])}, but declared as {_shown(of)}"
            for name, of in expected.items()
            if name in actual and actual[name] != of
        ),
    ]


def unreadable(stored: StructType, wanted: StructType) -> list[str]:
    """The columns of a stored version that cannot be read with this schema. A column that it lacks is read as null."""
    actual = {field.name: field.dataType for field in plain(stored).fields}
    return [
        f"column {field.name} is {_shown(actual[field.name])}, not {_shown(field.dataType)}"
        for field in plain(wanted).fields
        if field.name in actual and not _reads_as(actual[field.name], field.dataType)
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
            return {key: _without_metadata(item) for key, item in value.items() if key not in ("metadata", "nullable")}
        case list():
            return [_without_metadata(item) for item in value]
        case _:
            return value


def _shown(of: DataType) -> str:
    text = of.simpleString()
    return text if len(text) <= 100 else f"{text[:100]}..."
