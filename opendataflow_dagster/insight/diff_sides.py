"""The two sides of a difference: versions of a chunk with their files, or what a failed attempt staged."""

from __future__ import annotations

from dataclasses import dataclass

from ..ledger import lookup, sweeps
from ..ledger.chunks import current_manifest, require, versions_of
from ..ledger.database import Ledger, Transaction
from ..ledger.retry import gives_way
from ..model.diff import DiffRequest, Side
from ..model.errors import InvalidInput, InvalidManifest, UnknownName
from ..model.ids import ChunkKey
from ..model.manifest import ELSEWHERE, File, Manifest
from ..model.text import listing
from ..warehouse.placement import files_below, leads_out, misplaced
from .story import Attempt, story


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundSide:
    side: Side
    manifest: Manifest | None
    files: tuple[File, ...]


@gives_way
def find_sides(ledger: Ledger, request: DiffRequest) -> tuple[FoundSide, FoundSide]:
    """The old one and the new one. Their files are looked up outside the transaction."""
    attempt = _failed_attempt(ledger, request.chunk) if request.staged else None
    with ledger.transaction() as transaction:
        wanted = _versions(transaction, request)
        root = lookup.root_of(transaction, request.chunk.datasetid)
    found = [_version(manifest, root) for manifest in wanted]
    return found[0], _staged(request.chunk, attempt, root) if attempt is not None else found[1]


def _versions(transaction: Transaction, request: DiffRequest) -> list[Manifest]:
    """The old one, and the new one unless that is staged."""
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
    elif request.staged:
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
    wanted = [versions[old]] if request.staged else [versions[old], versions[new]]
    swept = sweeps.swept_versions(transaction, [manifest.manifest_id for manifest in wanted])
    if gone := [manifest for manifest in wanted if manifest.manifest_id in swept]:
        raise InvalidManifest(
            f"{chunk} version {gone[0].version} was swept on {swept[gone[0].manifest_id]:%Y-%m-%d}, so its rows are "
            f"gone; compare newer versions, and keep more with: odf sweep {chunk.datasetid} --keep-versions N"
        )
    return wanted


def _version(manifest: Manifest, root: str | None) -> FoundSide:
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
    return FoundSide(side=side, manifest=manifest, files=files)


def _failed_attempt(ledger: Ledger, chunk: ChunkKey) -> Attempt:
    ended = [attempt for attempt in story(ledger, chunk).attempts if attempt.ended and attempt.claim_id is not None]
    failed = [attempt for attempt in ended if attempt.version is None]
    if not failed:
        raise UnknownName(f"{chunk} has no attempt that ended without a version; compare versions, without --staged")
    return failed[-1]


def _staged(chunk: ChunkKey, attempt: Attempt, root: str | None) -> FoundSide:
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
    return FoundSide(side=side, manifest=None, files=files)


def _data_files(location: str) -> tuple[File, ...]:
    """Without what Spark writes beside them, and what it had not finished."""
    return tuple(
        file
        for file in files_below(location) or ()
        if not any(part.startswith((".", "_")) for part in file.path.split("/"))
    )
