"""Compares the rows of two small versions in this process. `spark_diff` does the same for large ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final, Literal, TypeAlias

import pyarrow

from ..model.diff import MOST_VALUES, Pairing, RowDiff, RowExample
from ..model.text import counted
from .arrow import text, texts

#: The values of one row that are compared, in the order of the columns.
_Row: TypeAlias = tuple[Any, ...]

#: In place of a NaN, which does not equal itself. No value of a column of numbers is a text.
_NAN: Final = "NaN"


def compare(old: Any, new: Any, pairing: Pairing, most: int) -> RowDiff:
    """Two Arrow tables. `most`: examples of each kind."""
    before, after = _Version(old, pairing), _Version(new, pairing)
    note = pairing.note
    if pairing.key and not (note := before.repeated_key("old") or after.repeated_key("new")):
        return _by_key(before, after, pairing, most)
    return _whole(before, after, note, most)


def _by_key(before: _Version, after: _Version, pairing: Pairing, most: int) -> RowDiff:
    places = before.by_key(), after.by_key()
    names = list(pairing.columns)
    changed: dict[_Row, list[str]] = {}
    for key, place in places[1].items():
        if key in places[0]:
            old_row, new_row = before.rows[places[0][key]], after.rows[place]
            if old_row != new_row:
                pairs = zip(names, old_row, new_row, strict=True)
                changed[key] = [name for name, old, new in pairs if old != new]
    added = [key for key in places[1] if key not in places[0]]
    removed = [key for key in places[0] if key not in places[1]]
    examples = [
        *(_changed(before, after, places[0][key], places[1][key], changed[key]) for key in _first(changed, most)),
        *(_one("added", after, places[1][key]) for key in _first(added, most)),
        *(_one("removed", before, places[0][key]) for key in _first(removed, most)),
    ]
    return RowDiff(
        key=pairing.key,
        old_rows=len(before.rows),
        new_rows=len(after.rows),
        added=len(added),
        removed=len(removed),
        changed=len(changed),
        changed_values=dict(Counter(name for columns in changed.values() for name in columns)),
        examples=tuple(examples),
    )


def _whole(before: _Version, after: _Version, note: str, most: int) -> RowDiff:
    old, new = Counter(before.rows), Counter(after.rows)
    added, removed = new - old, old - new
    examples = [
        *(_one("added", after, after.rows.index(row), (), added[row]) for row in _first(added, most)),
        *(_one("removed", before, before.rows.index(row), (), removed[row]) for row in _first(removed, most)),
    ]
    return RowDiff(
        key=(),
        old_rows=len(before.rows),
        new_rows=len(after.rows),
        added=added.total(),
        removed=removed.total(),
        examples=tuple(examples),
        note=note,
    )


class _Version:
    def __init__(self, table: Any, pairing: Pairing) -> None:
        self.key = pairing.key
        self.values = {name: _values(table, name, as_double) for name, as_double in pairing.columns.items()}
        forms = [_forms(self.values[name], table, name) for name in pairing.columns]
        self.rows: list[_Row] = list(zip(*forms, strict=True))
        places = [list(pairing.columns).index(name) for name in pairing.key]
        self._keys: list[_Row] = [tuple(row[place] for place in places) for row in self.rows]

    def by_key(self) -> dict[_Row, int]:
        return {key: place for place, key in enumerate(self._keys)}

    def repeated_key(self, which: str) -> str:
        repeated = [key for key, times in Counter(self._keys).items() if times > 1]
        if not repeated:
            return ""
        place = self._keys.index(_first(repeated, 1)[0])
        return repeated_key(self.key, len(repeated), which, self.shown(place, self.key))

    def shown(self, place: int, names: Iterable[str]) -> dict[str, str]:
        return {name: text(self.values[name][place]) for name in names}


def repeated_key(key: Sequence[str], count: int, which: str, example: Mapping[str, str]) -> str:
    """`2 keys (id) occur more than once in the old rows, e.g. id=7`."""
    shown = ", ".join(f"{name}={value}" for name, value in example.items())
    verb = "occurs" if count == 1 else "occur"
    return f"{counted(count, 'key')} ({', '.join(key)}) {verb} more than once in the {which} rows, e.g. {shown}"


def _changed(before: _Version, after: _Version, old: int, new: int, columns: Sequence[str]) -> RowExample:
    pairs = {name: texts(before.values[name][old], after.values[name][new]) for name in columns[:MOST_VALUES]}
    return RowExample(
        change="changed",
        key=after.shown(new, after.key),
        old={name: pair[0] for name, pair in pairs.items()},
        new={name: pair[1] for name, pair in pairs.items()},
    )


def _one(
    change: Literal["added", "removed"], version: _Version, place: int, key: Sequence[str] | None = None, times: int = 1
) -> RowExample:
    by = version.key if key is None else key
    shown = version.shown(place, [name for name in version.values if name not in by][:MOST_VALUES])
    old, new = (None, shown) if change == "added" else (shown, None)
    return RowExample(change=change, key=version.shown(place, by), old=old, new=new, times=times)


def _values(table: Any, name: str, as_double: bool) -> list[Any]:
    if name not in table.column_names:  # a version without files
        return []
    column = table.column(name)
    if pyarrow.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pyarrow.string())  # Python's own times end at microseconds
    values: list[Any] = column.to_pylist()
    return [None if value is None else float(value) for value in values] if as_double else values


def _forms(values: list[Any], table: Any, name: str) -> list[Any]:
    """What is compared in place of the values: equal where Spark finds them equal."""
    of = table.schema.field(name).type if values else None
    form: Callable[[Any], Any] | None = None
    if of is not None and pyarrow.types.is_nested(of):
        form = _nested
    elif any(isinstance(value, float) for value in values):
        form = _number
    return [form(value) for value in values] if form else values


def _number(value: Any) -> Any:
    return _NAN if value != value else value


def _nested(value: Any) -> str:
    return repr(_in_order(value))


def _in_order(value: Any) -> Any:
    """Equal maps may be stored in any order. Arrow gives them as lists of pairs."""
    match value:
        case dict():
            return {name: _in_order(item) for name, item in value.items()}
        case [tuple(), *_]:
            return sorted(((_in_order(key), _in_order(item)) for key, item in value), key=repr)
        case list():
            return [_in_order(item) for item in value]
    return value


def _first(rows: Iterable[_Row], most: int) -> list[_Row]:
    """In order: nulls, values, NaN."""
    return nsmallest(most, rows, key=lambda row: [_place(value) for value in row])


def _place(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (2,) if value is _NAN else (1, value)
