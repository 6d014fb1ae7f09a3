"""sweep: remove the files of versions that retention does not keep, and of attempts that never became a version.

Versions are first marked in the ledger and then removed, so the next sweep finishes one that died. For the folder of a
claim there are three outcomes: it landed, it did not land, or this ledger does not know it. Only folders that did not
land are removed, after a delay; unknown folders stay and are reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from ..ledger import sweeps
from ..ledger.database import Ledger
from ..ledger.sweeps import ClaimFolder
from ..model.ids import ChunkKey, DatasetId, dataset_id
from ..model.manifest import Manifest
from ..model.retention import Retention
from ..warehouse.sweep import claim_folders, claim_of, remove

# Folders looked up in the ledger per statement.
_BATCH = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class SweptFolder:
    """A folder that was removed or kept, and why."""

    chunk: ChunkKey
    location: str
    #: None: it never became a version.
    version: int | None = None
    bytes: int | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Swept:
    datasetid: DatasetId
    dry_run: bool
    #: Files of old versions.
    versions: tuple[SweptFolder, ...] = ()
    #: Files of attempts that never became a version.
    orphans: tuple[SweptFolder, ...] = ()
    #: Folders of claims that this ledger does not know; they were kept.
    unknown: tuple[SweptFolder, ...] = ()
    #: Folders that could not be removed; the next sweep tries again.
    problems: tuple[SweptFolder, ...] = ()

    def __str__(self) -> str:
        size = sum(folder.bytes or 0 for folder in self.versions)
        return (
            f"{self.datasetid}: {'would remove' if self.dry_run else 'removed'} {len(self.versions)} old versions "
            f"({size:,} bytes) and {len(self.orphans)} failed attempts; "
            f"kept {len(self.unknown)} unknown folders; problems: {len(self.problems)}"
        )


def sweep(ledger: Ledger, datasetid: str, retention: Retention, *, by: str, dry_run: bool = False) -> Swept:
    """Sweeps below the root of the DataSet. `dry_run`: reports what would be removed, and touches nothing."""
    name = dataset_id(datasetid)
    with ledger.transaction(actor=by) as transaction:
        root = sweeps.root_of(transaction, name)
        if not dry_run:
            sweeps.mark_expired(transaction, name, retention, by)
        versions = sweeps.marked_versions(transaction, name)
        if dry_run:
            versions += sweeps.expired_versions(transaction, name, retention)
    report = _Report(dry_run=dry_run)
    removed = [version.manifest_id for version in versions if report.drop(root, version)]
    if removed and not dry_run:
        with ledger.statement() as statement:
            sweeps.mark_removed(statement, removed)
    for folders in _batches(root):
        with ledger.statement() as statement:
            fates = sweeps.claim_fates(statement, name, folders, retention.failed)
        for folder, fate, is_old in fates:
            chunk = ChunkKey(datasetid=name, dataid=folder.dataid)
            if fate == "UNKNOWN":
                why = f"this ledger has no claim {folder.claim_id} for {chunk}"
                report.unknown.append(SweptFolder(chunk=chunk, location=folder.location, why=why))
            elif fate == "SWEPT" or (fate == "NOT_LANDED" and is_old):
                why = f"claim {folder.claim_id} ended without a version" if is_old else "left over from a swept version"
                report.orphan(SweptFolder(chunk=chunk, location=folder.location, why=why))
    return Swept(
        datasetid=name,
        dry_run=dry_run,
        versions=tuple(report.versions),
        orphans=tuple(report.orphans),
        unknown=tuple(report.unknown),
        problems=tuple(report.problems),
    )


class _Report:
    def __init__(self, *, dry_run: bool) -> None:
        self._dry_run = dry_run
        self.versions: list[SweptFolder] = []
        self.orphans: list[SweptFolder] = []
        self.unknown: list[SweptFolder] = []
        self.problems: list[SweptFolder] = []
        self._removed: set[str] = set()

    def drop(self, root: str, version: Manifest) -> bool:
        chunk = ChunkKey(datasetid=version.datasetid, dataid=version.dataid)
        claim = claim_of(root, version.location)
        folder = SweptFolder(chunk=chunk, location=version.location, version=version.version, bytes=version.bytes)
        if claim is None or claim[0] != version.dataid:
            # Not written by a claim below this root: announced from elsewhere, or older than the root.
            self.problems.append(replace(folder, why=f"not the folder of a claim below {root}; remove it by hand"))
            return False
        return self._remove(folder, self.versions)

    def orphan(self, folder: SweptFolder) -> None:
        self._remove(folder, self.orphans)

    def _remove(self, folder: SweptFolder, done: list[SweptFolder]) -> bool:
        if not self._dry_run and folder.location not in self._removed:
            try:
                remove(folder.location)
            except Exception as error:  # each store raises its own errors; continue with the other folders
                self.problems.append(replace(folder, why=f"{type(error).__name__}: {error}"))
                return False
            self._removed.add(folder.location)
        done.append(folder)
        return True


def _batches(root: str) -> Iterator[list[ClaimFolder]]:
    folders = (
        ClaimFolder(dataid=dataid, claim_id=claim_id, location=location)
        for dataid, claim_id, location in claim_folders(root)
    )
    while batch := list(islice(folders, _BATCH)):
        yield batch
