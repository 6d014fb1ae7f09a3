"""diff: what differs between two versions of a chunk, or between a version and what a failed attempt staged.

Files are read through the manifests of the versions. Small versions are compared in this process; for large ones the
caller starts Spark (engine/version_diff.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..ledger.database import Ledger
from ..model.columns import column_changes, comparable_columns, is_nested
from ..model.diff import DiffRequest, InputChange, Pairing, RowDiff, VersionDiff
from ..model.errors import InvalidInput, UnknownName
from ..model.ids import ChunkKey
from ..model.manifest import ELSEWHERE, CheckResult, File, Manifest
from ..model.status import Status
from ..model.text import did_you_mean, listing
from .diff_sides import FoundSide, find_sides
from .story import Story

#: More values or bytes than this are compared on Spark, whose start costs seconds.
MOST_VALUES: Final = 2_000_000
MOST_BYTES: Final = 128 * 1024**2


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two sides, and how their rows are compared."""

    diff: VersionDiff
    old_files: tuple[File, ...]
    new_files: tuple[File, ...]
    #: None: the rows cannot be compared.
    pairing: Pairing | None
    is_small: bool
    examples: int


def diffs_of(story: Story) -> list[DiffRequest]:
    """What differs for a chunk that failed or is stale: what its newest attempt wrote, and each newer input."""
    requests = [
        DiffRequest(chunk=ChunkKey(datasetid=newer.datasetid, dataid=newer.dataid), old=newer.used, new=newer.current)
        for newer in story.newer_inputs
        if newer.used and newer.current
    ]
    if story.versions and any(chunk.status == Status.FAILED for chunk in story.chunks):
        requests.insert(0, DiffRequest(chunk=story.key, staged=True))
    return requests


def prepare(ledger: Ledger, request: DiffRequest) -> Comparison:
    """Finds the two sides and what is known without reading a row."""
    old, new = find_sides(ledger, request)
    rows_note = _not_parquet(old) or _not_parquet(new)
    columns: list[Mapping[str, str]] = [{}, {}]
    pairing, is_small = None, True
    if not rows_note:
        from ..warehouse.arrow import footers  # loads pyarrow

        read = [footers(found.side.location, found.files) for found in (old, new)]
        # A version without files has no rows, and the columns of the other.
        columns = [(read[place] if side.files else read[1 - place]).columns for place, side in enumerate((old, new))]
        pairing = _pairing(request, columns[0], columns[1], old, new)
        values = sum(each.rows * len(each.columns) for each in read)
        is_small = values <= MOST_VALUES and sum(each.bytes for each in read) <= MOST_BYTES
        if not pairing.columns:
            pairing, is_small = None, True
            rows_note = "the two have no column in common whose values can be compared"
    diff = VersionDiff(
        chunk=request.chunk,
        old=old.side,
        new=new.side,
        columns=column_changes(*columns),
        rows=None,
        rows_note=rows_note,
        inputs=tuple(_input_changes(old.manifest, new.manifest)),
    )
    return Comparison(
        diff=diff,
        old_files=old.files,
        new_files=new.files,
        pairing=pairing,
        is_small=is_small,
        examples=request.examples,
    )


def compare_here(comparison: Comparison) -> RowDiff | None:
    """In this process. None: the rows cannot be compared."""
    if comparison.pairing is None:
        return None
    from ..warehouse import arrow, arrow_diff  # loads pyarrow

    old = arrow.table(comparison.diff.old.location, comparison.old_files)
    new = arrow.table(comparison.diff.new.location, comparison.new_files)
    return arrow_diff.compare(old, new, comparison.pairing, comparison.examples)


def _not_parquet(found: FoundSide) -> str:
    if found.side.location == ELSEWHERE:
        return f"{found.side} is at a place that only its producer knows"
    other = [file.path for file in found.files if not file.path.endswith(".parquet")]
    return f"{found.side} has files that are not Parquet ({listing(other)})" if other else ""


def _pairing(
    request: DiffRequest, old_types: Mapping[str, str], new_types: Mapping[str, str], old: FoundSide, new: FoundSide
) -> Pairing:
    columns = comparable_columns(old_types, new_types)
    if request.key:
        if unknown := [name for name in request.key if name not in {**old_types, **new_types}]:
            advice = did_you_mean(unknown[0], new_types, f"it has {listing(list(new_types), 20)}")
            raise UnknownName(f"{request.chunk} has no column {unknown[0]}; {advice}")
        if problem := _unusable(request.key, columns, new_types):
            raise InvalidInput(f"{request.chunk}: {problem}, so it cannot be a key; pass other columns with --key")
        return Pairing(key=tuple(dict.fromkeys(request.key)), columns=columns)
    note = ""
    for check in (*new.side.checks, *old.side.checks):
        key = _unique_columns(check, {**old_types, **new_types})
        if key and not (note := _unusable(key, columns, new_types)):
            return Pairing(key=key, columns=columns)
    return Pairing(key=(), columns=columns, note=note or "no unique(...) check names a key; pass one with --key")


def _unusable(key: Sequence[str], columns: Mapping[str, bool], types: Mapping[str, str]) -> str:
    for name in key:
        if name not in columns:
            return f"column {name} is not in both, or has another type"
        if is_nested(types[name]):
            return f"column {name} is nested ({types[name]})"
    return ""


def _unique_columns(check: CheckResult, types: Mapping[str, str]) -> tuple[str, ...]:
    match = re.fullmatch(r"unique\((.+)\)", check.name, re.DOTALL)
    if match is None:
        return ()
    names = (match[1],) if match[1] in types else tuple(match[1].split(", "))
    return names if all(name in types for name in names) else ()


def _input_changes(old: Manifest | None, new: Manifest | None) -> list[InputChange]:
    """None where one of them has no manifest: what a failed attempt read is in its answers."""
    if old is None or new is None:
        return []
    before, after = ({pin.chunk: str(pin.version or "external") for pin in each.inputs} for each in (old, new))
    return [
        InputChange(chunk=chunk, old=before.get(chunk), new=after.get(chunk))
        for chunk in sorted({*before, *after})
        if before.get(chunk) != after.get(chunk)
    ]
