"""Find and remove the claim folders below a DataSet's root. The ledger decides which may be removed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import fsspec

from ..model.errors import InvalidName
from ..model.ids import ClaimId, DataId, DatasetId
from .location import claim_in, continues, decoded, file_system


def claim_folders(
    root: str, datasetid: DatasetId, others: Collection[str] = ()
) -> Iterator[tuple[DataId, ClaimId, str]]:
    """The dataid, claim and location of every claim folder of this DataSet. All else is ignored: other folders, and
    what is below `others`, the roots of other DataSets relative to this one."""
    filesystem, top = file_system(root)
    if filesystem.isdir(top):
        for name in _folders(filesystem, top):
            if name not in others:
                yield from _below(filesystem, top, root.rstrip("/"), name, datasetid, others)


def claim_of(root: str, location: str, datasetid: DatasetId) -> tuple[DataId, ClaimId] | None:
    """The owner of this folder; None if it does not have the form of `folder_of`."""
    prefix = f"{root.rstrip('/')}/"
    folder, _, name = location.removeprefix(prefix).rpartition("/")
    claim = claim_in(name, datasetid)
    if not location.startswith(prefix) or not folder or claim is None or ".." in folder.split("/"):
        return None
    try:
        return decoded(folder), claim
    except InvalidName:
        return None


def remove(location: str) -> None:
    """The folder and its contents. One that does not exist is fine."""
    filesystem, folder = file_system(location)
    try:
        filesystem.rm(folder, recursive=True)
    except FileNotFoundError:
        if filesystem.exists(folder):
            raise


def _below(
    filesystem: fsspec.AbstractFileSystem,
    top: str,
    root: str,
    folder: str,
    datasetid: DatasetId,
    others: Collection[str],
) -> Iterator[tuple[DataId, ClaimId, str]]:
    for name in _folders(filesystem, f"{top}/{folder}"):
        below = f"{folder}/{name}"
        if any(other == below or other.startswith(f"{below}/") for other in others):
            continue
        if continues(name):
            yield from _below(filesystem, top, root, below, datasetid, others)
        elif owner := claim_of(root, f"{root}/{below}", datasetid):
            yield *owner, f"{root}/{below}"


def _folders(filesystem: fsspec.AbstractFileSystem, path: str) -> list[str]:
    entries = filesystem.ls(path, detail=True)
    return sorted(entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory")
