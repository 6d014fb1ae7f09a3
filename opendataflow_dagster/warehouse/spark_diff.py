"""Compares the rows of two versions on Spark, however many they are. `arrow_diff` does the same for small ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import expr

from ..model.diff import MOST_VALUES, Pairing, RowDiff, RowExample
from ..model.literals import quoted
from .arrow import text, texts
from .arrow_diff import repeated_key
from .digest import hashable


def compare(old: DataFrame, new: DataFrame, pairing: Pairing, most: int) -> RowDiff:
    """`most`: examples of each kind."""
    before, after = (_numbered(frame, pairing) for frame in (old, new))
    note = pairing.note
    if pairing.key and not (note := _repeated(before, pairing, "old") or _repeated(after, pairing, "new")):
        return _by_key(before, after, pairing, most)
    return _whole(before, after, pairing, note, most)


def _numbered(frame: DataFrame, pairing: Pairing) -> DataFrame:
    """The compared columns as c0, c1, ..., so that their names cannot clash with ours."""
    casts = {name: "cast({} as double)" if as_double else "{}" for name, as_double in pairing.columns.items()}
    return frame.select(
        [expr(f"{cast.format(quoted(name))} as c{place}") for place, (name, cast) in enumerate(casts.items())]
    )


def _forms(frame: DataFrame, prefix: str = "") -> list[str]:
    """What is compared in place of each value: nested ones as JSON."""
    return [hashable(f"{prefix}{field.name}", field.dataType) for field in frame.schema.fields]


def _key_columns(pairing: Pairing) -> list[str]:
    names = list(pairing.columns)
    return [f"c{names.index(name)}" for name in pairing.key]


def _repeated(frame: DataFrame, pairing: Pairing, which: str) -> str:
    keys = _key_columns(pairing)
    repeated = frame.groupBy(*keys).agg(expr("count(1) as times")).where("times > 1")
    if not (count := repeated.count()):
        return ""
    (first,) = _rows(repeated.orderBy(*_orders(keys)).limit(1))
    example = {name: text(first[column]) for name, column in zip(pairing.key, keys, strict=True)}
    return repeated_key(pairing.key, count, which, example)


def _by_key(before: DataFrame, after: DataFrame, pairing: Pairing, most: int) -> RowDiff:
    names, keys = list(pairing.columns), _key_columns(pairing)
    old = before.select([expr(f"{column} as o{column}") for column in before.columns] + [expr("true as in_old")])
    new = after.select([expr(f"{column} as n{column}") for column in after.columns] + [expr("true as in_new")])
    joined = old.join(new, expr(" and ".join(f"o{key} <=> n{key}" for key in keys)), "full_outer")
    differs = [
        f"in_old and in_new and not ({a} <=> {b})" for a, b in zip(_forms(before, "o"), _forms(after, "n"), strict=True)
    ]
    flags = [expr(f"{condition} as d{place}") for place, condition in enumerate(differs)]
    any_flag = " or ".join(f"d{place}" for place in range(len(names)))
    kind = (
        f"case when in_old is null then 'added' when in_new is null then 'removed' when {any_flag} then 'changed' end"
    )
    different = joined.select("*", *flags).withColumn("kind", expr(kind)).where("kind is not null").persist()
    try:
        (counts,) = different.agg(
            *(_counted(f"kind = '{each}'", each) for each in ("added", "removed", "changed")),
            *(_counted(f"kind = 'changed' and d{place}", f"v{place}") for place in range(len(names))),
        ).collect()
        examples = []
        for each in ("changed", "added", "removed"):
            side = "o" if each == "removed" else "n"
            few = different.where(f"kind = '{each}'").orderBy(*_orders([f"{side}{key}" for key in keys])).limit(most)
            examples += [_example(each, row, pairing) for row in _rows(few)]
    finally:
        different.unpersist()
    return RowDiff(
        key=pairing.key,
        old_rows=before.count(),
        new_rows=after.count(),
        added=counts["added"],
        removed=counts["removed"],
        changed=counts["changed"],
        changed_values={name: counts[f"v{place}"] for place, name in enumerate(names) if counts[f"v{place}"]},
        examples=tuple(examples),
    )


def _whole(before: DataFrame, after: DataFrame, pairing: Pairing, note: str, most: int) -> RowDiff:
    forms = [f"{form} as f{place}" for place, form in enumerate(_forms(after))]
    both = before.selectExpr("*", "1 as o", "0 as n").unionAll(after.selectExpr("*", "0 as o", "1 as n"))
    values = [f"first({column}) as {column}" for column in after.columns]
    groups = (
        both.selectExpr("*", *forms)
        .groupBy(*(f"f{place}" for place in range(len(forms))))
        .agg(*map(expr, values), expr("sum(o) as o"), expr("sum(n) as n"))
        .persist()
    )
    try:
        (counts,) = groups.agg(
            expr("sum(o) as old_rows"),
            expr("sum(n) as new_rows"),
            expr("sum(greatest(n - o, 0)) as added"),
            expr("sum(greatest(o - n, 0)) as removed"),
        ).collect()
        examples = []
        for each, times in (("added", "n - o"), ("removed", "o - n")):
            orders = _orders([f"f{place}" for place in range(len(forms))])
            few = groups.where(f"{times} > 0").orderBy(*orders).limit(most)
            examples += [
                _one(each, row, "", pairing, row["times"]) for row in _rows(few.withColumn("times", expr(times)))
            ]
    finally:
        groups.unpersist()
    return RowDiff(
        key=(),
        old_rows=counts["old_rows"] or 0,
        new_rows=counts["new_rows"] or 0,
        added=counts["added"] or 0,
        removed=counts["removed"] or 0,
        examples=tuple(examples),
        note=note,
    )


def _counted(condition: str, name: str) -> Column:
    return expr(f"count_if({condition}) as {name}")


def _orders(columns: list[str]) -> list[Column]:
    return [expr(column).asc_nulls_first() for column in columns]


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    """As Arrow gives them, so that a value looks the same whatever compared it."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def _example(kind: str, row: Mapping[str, Any], pairing: Pairing) -> RowExample:
    if kind != "changed":
        return _one(kind, row, "o" if kind == "removed" else "n", pairing)
    places = [place for place in range(len(pairing.columns)) if row[f"d{place}"]][:MOST_VALUES]
    names = list(pairing.columns)
    pairs = {names[place]: texts(row[f"oc{place}"], row[f"nc{place}"]) for place in places}
    return RowExample(
        change="changed",
        key=_shown(row, "n", pairing, pairing.key),
        old={name: pair[0] for name, pair in pairs.items()},
        new={name: pair[1] for name, pair in pairs.items()},
    )


def _one(kind: str, row: Mapping[str, Any], prefix: str, pairing: Pairing, times: int = 1) -> RowExample:
    by = pairing.key if prefix else ()
    shown = _shown(row, prefix, pairing, [name for name in pairing.columns if name not in by][:MOST_VALUES])
    key = _shown(row, prefix, pairing, by)
    if kind == "added":
        return RowExample(change="added", key=key, old=None, new=shown, times=times)
    return RowExample(change="removed", key=key, old=shown, new=None, times=times)


def _shown(row: Mapping[str, Any], prefix: str, pairing: Pairing, names: Any) -> dict[str, str]:
    places = {name: place for place, name in enumerate(pairing.columns)}
    return {name: text(row[f"{prefix}c{places[name]}"]) for name in names}
