"""Find and remove the claim folders below a DataSet's root. The ledger decides which may be removed."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec

from ..model.errors import InvalidName
from ..model.ids import ClaimId, DataId
from .location import continues, decoded, file_system, is_claim


def claim_folders(root: str) -> Iterator[tuple[DataId, ClaimId, str]]:
    """The dataid, claim and location of every claim folder. Other folders are ignored."""
    filesystem, top = file_system(root)
    if filesystem.isdir(top):
        for name in _folders(filesystem, top):
            yield from _below(filesystem, top, root.rstrip("/"), name)


def claim_of(root: str, location: str) -> tuple[DataId, ClaimId] | None:
    """The owner of this folder; None if it does not have the form of `folder_of`."""
    prefix = f"{root.rstrip('/')}/"
    folder, _, claim = location.removeprefix(prefix).rpartition("/")
    if not location.startswith(prefix) or not folder or not is_claim(claim) or ".." in folder.split("/"):
        return None
    try:
        return decoded(folder), ClaimId(int(claim))
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
    filesystem: fsspec.AbstractFileSystem, top: str, root: str, folder: str
) -> Iterator[tuple[DataId, ClaimId, str]]:
    for name in _folders(filesystem, f"{top}/{folder}"):
        if continues(name):
            yield from _below(filesystem, top, root, f"{folder}/{name}")
        elif owner := claim_of(root, f"{root}/{folder}/{name}"):
            yield *owner, f"{root}/{folder}/{name}"


def _folders(filesystem: fsspec.AbstractFileSystem, path: str) -> list[str]:
    entries = filesystem.ls(path, detail=True)
    return sorted(entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory")
