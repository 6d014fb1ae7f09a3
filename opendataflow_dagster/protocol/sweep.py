"""sweep: remove the files of versions that retention does not keep, and of attempts that never became a version.

Versions are first marked in the ledger and then removed, so the next sweep finishes one that died. For the folder of a
claim there are three outcomes: it landed, it did not land, or this ledger does not know it. Only folders that did not
land are removed, after a delay; unknown folders stay and are reported. A folder in, above or below which any DataSet
has a version that is needed is never removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from ..ledger import sweeps
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..ledger.sweeps import ClaimFolder
from ..model.ids import ChunkKey, DatasetId, ManifestId, dataset_id
from ..model.manifest import Manifest
from ..model.retention import Retention
from ..warehouse.placement import leads_out
from ..warehouse.sweep import claim_folders, claim_of, remove

# Folders looked up in the ledger per statement.
_LOOKED_UP_AT_ONCE = 1000
_REMOVED_AT_ONCE = 100
_Item = TypeVar("_Item")


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
    root, others, versions = _decide(ledger, name, retention, by, dry_run)
    dropping = [version.manifest_id for version in versions] if dry_run else None
    removal = _Removal(ledger, root, others, dropping=dropping)
    removal.remove_versions(versions)
    unknown: list[SweptFolder] = []
    for folders in _batches(_claim_folders(root, name, others), _LOOKED_UP_AT_ONCE):
        with ledger.statement() as statement:
            fates = sweeps.claim_fates(statement, name, folders, retention.failed)
        orphans: list[SweptFolder] = []
        for folder, fate, is_old in fates:
            chunk = ChunkKey(datasetid=name, dataid=folder.dataid)
            if fate == "UNKNOWN":
                why = f"this ledger has no claim {folder.claim_id} for {chunk}"
                unknown.append(SweptFolder(chunk=chunk, location=folder.location, why=why))
            elif fate == "SWEPT" or (fate == "NOT_LANDED" and is_old):
                why = f"claim {folder.claim_id} ended without a version" if is_old else "left over from a swept version"
                orphans.append(SweptFolder(chunk=chunk, location=folder.location, why=why))
        removal.orphans += removal.remove(orphans)
    return Swept(
        datasetid=name,
        dry_run=dry_run,
        versions=tuple(removal.versions),
        orphans=tuple(removal.orphans),
        unknown=tuple(unknown),
        problems=tuple(removal.problems),
    )


@gives_way
def _decide(
    ledger: Ledger, name: DatasetId, retention: Retention, by: str, dry_run: bool
) -> tuple[str, frozenset[str], list[Manifest]]:
    """The root, the roots of other DataSets, and the versions that lose their files."""
    with ledger.transaction(actor=by) as transaction:
        root = sweeps.root_of(transaction, name)
        others = sweeps.other_roots(transaction, name)
        if not dry_run:
            sweeps.mark_expired(transaction, name, retention, by)
        versions = sweeps.marked_versions(transaction, name)
        if dry_run:
            versions += sweeps.expired_versions(transaction, name, retention)
    return root, others, versions


class _Removal:
    def __init__(
        self, ledger: Ledger, root: str, others: Collection[str], *, dropping: Sequence[ManifestId] | None
    ) -> None:
        self._ledger = ledger
        self._root = root
        #: The roots of other DataSets, relative to this one.
        self._others = others
        #: Not None: a dry run, which would drop these.
        self._dropping = dropping
        self.versions: list[SweptFolder] = []
        self.orphans: list[SweptFolder] = []
        self.problems: list[SweptFolder] = []
        self._removed: set[str] = set()

    def remove_versions(self, versions: Sequence[Manifest]) -> None:
        folders: dict[SweptFolder, ManifestId] = {}
        for version in versions:
            chunk = ChunkKey(datasetid=version.datasetid, dataid=version.dataid)
            claim = claim_of(self._root, version.location, version.datasetid)
            folder = SweptFolder(chunk=chunk, location=version.location, version=version.version, bytes=version.bytes)
            if claim is None or claim[0] != version.dataid:
                # Not written by a claim below this root: announced from elsewhere, or older than the root.
                self._keep(folder, f"not the folder of a claim below {self._root}; remove it by hand")
            elif self._is_of_another(version.location):
                self._keep(folder, "the root of another DataSet is in or around this folder; remove it by hand")
            else:
                folders[folder] = version.manifest_id
        self.versions = self.remove(list(folders))
        if self.versions and self._dropping is None:
            with self._ledger.statement() as statement:
                sweeps.mark_removed(statement, [folders[folder] for folder in self.versions])

    def _is_of_another(self, location: str) -> bool:
        """What another DataSet writes there may not be a version yet."""
        folder = f"{location.removeprefix(f'{self._root}/')}/"
        return any(folder.startswith(f"{other}/") or f"{other}/".startswith(folder) for other in self._others)

    def remove(self, folders: Sequence[SweptFolder]) -> list[SweptFolder]:
        """The folders that were removed. Asks for each few whether anybody needs them, just before they go."""
        removed: list[SweptFolder] = []
        for few in _batches(folders, _REMOVED_AT_ONCE):
            with self._ledger.statement() as statement:
                in_use = sweeps.folders_in_use(statement, [folder.location for folder in few], self._dropping or ())
            for folder in few:
                if user := in_use.get(folder.location):
                    self._keep(folder, f"{user} needs files there; it goes when no version needs it")
                elif self._remove(folder):
                    removed.append(folder)
        return removed

    def _remove(self, folder: SweptFolder) -> bool:
        if self._dropping is None and folder.location not in self._removed:
            try:
                if leads_out(folder.location, self._root):
                    self._keep(folder, f"a symlink leads out of {self._root}; remove it by hand")
                    return False
                remove(folder.location)
            except Exception as error:  # each store raises its own errors; continue with the other folders
                self._keep(folder, f"{type(error).__name__}: {error}")
                return False
            self._removed.add(folder.location)
        return True

    def _keep(self, folder: SweptFolder, why: str) -> None:
        self.problems.append(replace(folder, why=why))


def _claim_folders(root: str, datasetid: DatasetId, others: Collection[str]) -> Iterator[ClaimFolder]:
    for dataid, claim_id, location in claim_folders(root, datasetid, others):
        yield ClaimFolder(dataid=dataid, claim_id=claim_id, location=location)


def _batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
