"""Parquet without Spark: the columns of a version, its size, its rows if they are few, and values as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow
import pyarrow.parquet

from ..model.errors import InvalidManifest
from ..model.manifest import File
from .location import file_system

#: The longest text of a value, and how many items of a nested one are shown.
LONGEST: Final = 60
_MOST_ITEMS = 10
_PLAIN = re.compile(r"[\w.,:+/@-]+")
#: Texts that would look like another value.
_AMBIGUOUS = frozenset(("null", "true", "false", "NaN"))

_SPARK_NAMES = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "large_string": "string",
    "large_binary": "binary",
    "date32[day]": "date",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Footers:
    """What the footers of a version's files say."""

    #: Column: its type, as Spark writes it.
    columns: Mapping[str, str]
    rows: int
    #: Uncompressed.
    bytes: int


def footers(location: str, files: Sequence[File]) -> Footers:
    read = _each(location, files, lambda file: (file.schema_arrow, file.metadata))
    groups = [metadata.row_group(place) for _, metadata in read for place in range(metadata.num_row_groups)]
    schema = pyarrow.unify_schemas([schema for schema, _ in read] or [pyarrow.schema([])], promote_options="permissive")
    return Footers(
        columns={field.name: type_name(field.type) for field in schema},
        rows=sum(metadata.num_rows for _, metadata in read),
        bytes=sum(group.total_byte_size for group in groups),
    )


def table(location: str, files: Sequence[File]) -> Any:
    """All rows, in memory."""
    tables = _each(location, files, lambda file: file.read())
    return pyarrow.concat_tables(tables, promote_options="permissive") if tables else pyarrow.table({})


def _each(location: str, files: Sequence[File], read: Callable[[Any], Any]) -> list[Any]:
    filesystem, folder = file_system(location)
    results = []
    for file in files:
        path = f"{folder}/{file.path}"
        try:
            with filesystem.open(path) as source:
                results.append(read(pyarrow.parquet.ParquetFile(source, coerce_int96_timestamp_unit="us")))
        except (pyarrow.ArrowException, OSError) as error:
            raise InvalidManifest(f"{path} cannot be read as Parquet ({_first_line(error)}); restore it") from error
    return results


def type_name(of: Any) -> str:
    """As Spark writes it."""
    types = pyarrow.types
    if types.is_decimal(of):
        return f"decimal({of.precision},{of.scale})"
    if types.is_timestamp(of):
        return "timestamp_ntz" if of.tz is None else "timestamp"
    if types.is_map(of):
        return f"map<{type_name(of.key_type)},{type_name(of.item_type)}>"
    if types.is_list(of) or types.is_large_list(of):
        return f"array<{type_name(of.value_type)}>"
    if types.is_struct(of):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in of)}>"
    return _SPARK_NAMES.get(str(of), str(of))


def text(value: Any) -> str:
    """Short, however long or deep the value is."""
    shown = _text(value)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."


def texts(old: Any, new: Any) -> tuple[str, str]:
    """Two different values. Of long texts, the part where they differ."""
    shown = text(old), text(new)
    if shown[0] != shown[1]:
        return shown
    whole = _text(old, most=None), _text(new, most=None)
    same = next((place for place, (a, b) in enumerate(zip(*whole, strict=False)) if a != b), min(map(len, whole)))
    start = max(0, same - LONGEST // 3)
    first, second = (f"...{part[start : start + LONGEST]}" for part in whole)
    return first, second


def _text(value: Any, most: int | None = LONGEST) -> str:
    items = _MOST_ITEMS if most else None
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            cut = value[: most + 1] if most else value
            return cut if _PLAIN.fullmatch(cut) and cut not in _AMBIGUOUS else repr(cut)
        case float():
            return "NaN" if value != value else repr(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return f"0x{(value[:most] if most else value).hex()}"
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case dict():
            return (
                f"{{{_listed([f'{name}: {_text(item, most)}' for name, item in list(value.items())[:items]], value)}}}"
            )
        case list() | tuple():
            return f"[{_listed([_text(item, most) for item in value[:items]], value)}]"
    return str(value)


def _listed(shown: list[str], all_items: Any) -> str:
    return ", ".join([*shown, *(["..."] if len(shown) < len(all_items) else [])])


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
