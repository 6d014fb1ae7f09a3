"""The columns of two versions: what changed, and which of them can be compared by value."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher

from .diff import ColumnChange

_INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint"))
_FLOATS = frozenset(("float", "double"))


def column_changes(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[ColumnChange, ...]:
    """Both map columns, in order, to their types."""
    before, after = [name for name in old if name in new], [name for name in new if name in old]
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    kept = {name for block in blocks for name in before[block.a : block.a + block.size]}
    places_before = {name: str(place) for place, name in enumerate(old, 1)}
    places_after = {name: str(place) for place, name in enumerate(new, 1)}
    return (
        *(ColumnChange(column=name, change="added", old=None, new=new[name]) for name in new if name not in old),
        *(ColumnChange(column=name, change="removed", old=old[name], new=None) for name in old if name not in new),
        *(
            ColumnChange(column=name, change="type", old=old[name], new=new[name])
            for name in after
            if old[name] != new[name]
        ),
        *(
            ColumnChange(column=name, change="moved", old=places_before[name], new=places_after[name])
            for name in after
            if name not in kept
        ),
    )


def comparable_columns(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, bool]:
    """The columns that both have, in types whose values can be equal, and whether to compare them as doubles."""
    both = {name: (old[name], new[name]) for name in new if name in old}
    return {
        name: any(of in _FLOATS for of in types) and len(set(types)) > 1
        for name, types in both.items()
        if types[0] == types[1] or (_is_number(types[0]) and _is_number(types[1]))
    }


def is_nested(of: str) -> bool:
    return of.startswith(("array<", "map<", "struct<"))


def _is_number(of: str) -> bool:
    return of in _INTEGERS or of in _FLOATS or of.startswith("decimal(")
