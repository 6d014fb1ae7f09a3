"""diff: what differs between two versions of a chunk, or between a version and what a failed attempt staged.

Files are read through the manifests of the versions. Small versions are compared in this process; for large ones the
caller starts Spark (engine/version_diff.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ..ledger import lookup, sweeps
from ..ledger.chunks import current_manifest, require, versions_of
from ..ledger.database import Ledger, Transaction
from ..model.columns import column_changes, comparable_columns, is_nested
from ..model.diff import InputChange, Pairing, RowDiff, Side, VersionDiff
from ..model.errors import InvalidInput, InvalidManifest, UnknownName
from ..model.ids import ChunkKey
from ..model.manifest import ELSEWHERE, CheckResult, File, Manifest
from ..model.status import Status
from ..model.text import did_you_mean, listing
from ..warehouse.placement import files_below, leads_out, misplaced
from .story import Attempt, Story, story

#: More values or bytes than this are compared on Spark, whose start costs seconds.
MOST_VALUES: Final = 2_000_000
MOST_BYTES: Final = 128 * 1024**2


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffRequest:
    chunk: ChunkKey
    #: None: the version before `new`.
    old: int | None = None
    #: None: the current version.
    new: int | None = None
    #: Instead of `new`: what the newest attempt without a version left behind.
    staged: bool = False
    #: The columns that identify a row; empty: those of a `unique` check of the versions.
    key: Sequence[str] = ()
    #: How many examples of each kind.
    examples: int = 5


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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    side: Side
    manifest: Manifest | None
    files: tuple[File, ...]

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        return self.manifest.checks if self.manifest else ()


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
    attempt = _failed_attempt(ledger, request.chunk) if request.staged else None
    with ledger.transaction() as transaction:
        old, new = _sides(transaction, request, attempt)
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
            pairing, rows_note = None, "the two have no column in common whose values can be compared"
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


def _sides(transaction: Transaction, request: DiffRequest, attempt: Attempt | None) -> tuple[_Found, _Found]:
    chunk = request.chunk
    versions = {manifest.version: manifest for manifest in versions_of(transaction, chunk)}
    if not versions:
        require(transaction, [chunk])
        raise UnknownName(f"{chunk} has no version; see what became of it with: odf chunk show")
    current = current_manifest(transaction, chunk)
    newest = current.version if current else max(versions)
    new = request.new if request.new is not None else newest
    if request.old is not None:
        old = request.old
    elif attempt is not None:
        old = newest
    else:
        old = max((number for number in versions if number < new), default=0)
    for number in (old, new):
        if number not in versions:
            only = f"version {listing(list(versions), 20)}"
            raise UnknownName(
                f"{chunk} has no version {number}; it has {only}"
                if number
                else f"{chunk} has nothing before version {new} to compare it with; it has {only}"
            )
    wanted = [versions[old]] if attempt is not None else [versions[old], versions[new]]
    swept = sweeps.swept_versions(transaction, [manifest.manifest_id for manifest in wanted])
    if gone := [manifest for manifest in wanted if manifest.manifest_id in swept]:
        raise InvalidManifest(
            f"{chunk} version {gone[0].version} was swept on {swept[gone[0].manifest_id]:%Y-%m-%d}, so its rows are "
            f"gone; compare newer versions, and keep more with: odf sweep {chunk.datasetid} --keep-versions N"
        )
    root_of = partial(lookup.root_of, transaction, chunk.datasetid)
    found = [_version(manifest, root_of()) for manifest in wanted]
    return found[0], _staged(chunk, attempt, root_of()) if attempt is not None else found[1]


def _version(manifest: Manifest, root: str | None) -> _Found:
    files = manifest.files
    if manifest.location != ELSEWHERE:
        # A version from an external producer may list no files: then it is the whole folder.
        files = files or _data_files(manifest.location)
        if wrong := misplaced(manifest.location, files, lambda: root):
            raise InvalidManifest(
                f"{manifest.datasetid}/{manifest.dataid} version {manifest.version}: {wrong}; "
                f"restore the files, or compare other versions"
            )
    side = Side(
        version=manifest.version,
        claim_id=None,
        location=manifest.location,
        published=manifest.published,
        rows=manifest.row_count,
        bytes=manifest.bytes,
        code_version=manifest.code_version,
        content_digest=manifest.content_digest,
        checks=manifest.checks,
    )
    return _Found(side=side, manifest=manifest, files=files)


def _failed_attempt(ledger: Ledger, chunk: ChunkKey) -> Attempt:
    ended = [attempt for attempt in story(ledger, chunk).attempts if attempt.ended and attempt.claim_id is not None]
    failed = [attempt for attempt in ended if attempt.version is None]
    if not failed:
        raise UnknownName(f"{chunk} has no attempt that ended without a version; compare versions, without --staged")
    return failed[-1]


def _staged(chunk: ChunkKey, attempt: Attempt, root: str | None) -> _Found:
    """The folder that belongs to the claim alone. A write that failed leaves no data files in it."""
    from ..warehouse.location import folder_of  # slow to import

    claim_id = attempt.claim_id
    if root is None or claim_id is None:
        raise InvalidInput(f"DataSet {chunk.datasetid} has no location, so what claim {claim_id} staged is not known")
    location = folder_of(root, chunk.datasetid, chunk.dataid, claim_id)
    if leads_out(location, root):
        raise InvalidManifest(f"{location} leads out of its root {root} through a symlink; compare versions instead")
    files = _data_files(location)
    if not files:
        raise UnknownName(
            f"{chunk}: claim {claim_id} left no files at {location}; it ended before it had written them, or they were "
            f"swept. It ended with: {attempt.reason or attempt.outcome}"
        )
    side = Side(
        version=None,
        claim_id=claim_id,
        location=location,
        published=None,
        rows=None,
        bytes=sum(file.size for file in files),
        code_version=None,
        reason=attempt.reason,
    )
    return _Found(side=side, manifest=None, files=files)


def _data_files(location: str) -> tuple[File, ...]:
    """Without what Spark writes beside them, and what it had not finished."""
    return tuple(
        file
        for file in files_below(location) or ()
        if not any(part.startswith((".", "_")) for part in file.path.split("/"))
    )


def _not_parquet(found: _Found) -> str:
    if found.side.location == ELSEWHERE:
        return f"{found.side} is at a place that only its producer knows"
    other = [file.path for file in found.files if not file.path.endswith(".parquet")]
    return f"{found.side} has files that are not Parquet ({listing(other)})" if other else ""


def _pairing(
    request: DiffRequest, old_types: Mapping[str, str], new_types: Mapping[str, str], old: _Found, new: _Found
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
    for check in (*new.checks, *old.checks):
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
