"""sweep: remove the files of versions that retention does not keep, and what attempts left that became no version.

A version loses its files in two steps, first decided in the ledger and then done, so that a sweep that dies is finished
by the next. Of the folder of a claim the ledger says one of three things: it landed, it did not land, or it is unknown
here. Only what did not land goes, after some time; what is unknown stays and is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from ..ledger import sweeps
from ..ledger.database import Ledger
from ..ledger.sweeps import ClaimFolder
from ..model.ids import ChunkKey, DatasetId, ManifestId, dataset_id
from ..model.manifest import Manifest
from ..model.retention import Retention
from ..warehouse.sweep import claim_folders, claim_of, remove

# So many folders are asked of the ledger at once.
_AT_ONCE = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Folder:
    """What was removed or kept, and why."""

    chunk: ChunkKey
    location: str
    #: The version that it was; None: it was none.
    version: int | None = None
    bytes: int | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Swept:
    datasetid: DatasetId
    dry_run: bool
    #: Files of old versions.
    versions: tuple[Folder, ...] = ()
    #: Files of attempts that did not become a version.
    orphans: tuple[Folder, ...] = ()
    #: Folders of claims that this ledger does not know; they stay.
    unknown: tuple[Folder, ...] = ()
    #: What should have gone and could not; the next sweep tries again.
    problems: tuple[Folder, ...] = ()

    def __str__(self) -> str:
        size = sum(one.bytes or 0 for one in self.versions)
        done = "would be removed" if self.dry_run else "removed"
        return (
            f"{self.datasetid}: {done}: {len(self.versions)} old versions ({size:,} bytes), {len(self.orphans)} failed "
            f"attempts; kept because unknown: {len(self.unknown)}; problems: {len(self.problems)}"
        )


def sweep(ledger: Ledger, datasetid: str, retention: Retention, *, by: str, dry_run: bool = False) -> Swept:
    """What was removed below the root of this DataSet; with `dry_run`, what would be, and nothing is touched."""
    name = dataset_id(datasetid)
    with ledger.transaction(actor=by) as transaction:
        root = sweeps.root_of(transaction, name)
        candidates = sweeps.decided(transaction, name)
        if dry_run:
            candidates += sweeps.to_drop(transaction, name, retention)
        else:
            sweeps.decide(transaction, name, retention, by)
            candidates = sweeps.decided(transaction, name)
    report = _Report(dry_run=dry_run)
    gone = [one.manifest_id for one in candidates if report.drop(root, one)]
    if gone and not dry_run:
        _record(ledger, gone)
    for portion in _portions(name, root):
        with ledger.statement() as statement:
            known = sweeps.outcomes(statement, name, portion, retention.failed)
        for folder, outcome, is_old in known:
            chunk = ChunkKey(datasetid=name, dataid=folder.dataid)
            if outcome == "UNKNOWN":
                said = f"this ledger gave no claim {folder.claim_id} for {chunk}"
                report.unknown.append(Folder(chunk=chunk, location=folder.location, why=said))
            elif outcome == "SWEPT" or (outcome == "NOT_LANDED" and is_old):
                said = f"claim {folder.claim_id} ended without a version" if is_old else "a version that was swept"
                report.orphan(Folder(chunk=chunk, location=folder.location, why=said))
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
        self.versions: list[Folder] = []
        self.orphans: list[Folder] = []
        self.unknown: list[Folder] = []
        self.problems: list[Folder] = []
        self._removed: set[str] = set()

    def drop(self, root: str, version: Manifest) -> bool:
        chunk = ChunkKey(datasetid=version.datasetid, dataid=version.dataid)
        whose = claim_of(root, version.location)
        folder = Folder(chunk=chunk, location=version.location, version=version.version, bytes=version.bytes)
        if whose is None or whose[0] != version.dataid:
            # Someone else's files: announced from elsewhere, or made before the root was moved.
            self.problems.append(replace(folder, why=f"not a folder of a claim below {root}; remove it by hand"))
            return False
        return self._remove(folder, self.versions)

    def orphan(self, folder: Folder) -> None:
        self._remove(folder, self.orphans)

    def _remove(self, folder: Folder, done: list[Folder]) -> bool:
        if not self._dry_run and folder.location not in self._removed:
            try:
                remove(folder.location)
            except Exception as error:  # every store has errors of its own; the other folders must not wait for it
                self.problems.append(replace(folder, why=f"{type(error).__name__}: {error}"))
                return False
            self._removed.add(folder.location)
        done.append(folder)
        return True


def _record(ledger: Ledger, gone: list[ManifestId]) -> None:
    with ledger.statement() as statement:
        sweeps.done(statement, gone)


def _portions(datasetid: DatasetId, root: str) -> Iterator[list[ClaimFolder]]:
    found = (
        ClaimFolder(dataid=dataid, claim_id=claim_id, location=location)
        for dataid, claim_id, location in claim_folders(root)
    )
    while portion := list(islice(found, _AT_ONCE)):
        yield portion
