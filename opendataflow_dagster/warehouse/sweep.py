"""The folders of claims below a DataSet's root: find them, and remove one. Whether one may go, the ledger knows."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec

from ..model.errors import InvalidName
from ..model.ids import ClaimId, DataId
from .location import decoded, file_system, goes_on, is_claim


def claim_folders(root: str) -> Iterator[tuple[DataId, ClaimId, str]]:
    """Every folder of a claim: its dataid, its claim and its location. What does not look like ours is passed over."""
    filesystem, top = file_system(root)
    if filesystem.isdir(top):
        for name in _folders(filesystem, top):
            yield from _below(filesystem, top, root.rstrip("/"), name)


def claim_of(root: str, location: str) -> tuple[DataId, ClaimId] | None:
    """Whose folder this location is; None when it is not of the form that `folder_of` gives."""
    begin = f"{root.rstrip('/')}/"
    folder, _, claim = location.removeprefix(begin).rpartition("/")
    if not location.startswith(begin) or not folder or not is_claim(claim) or ".." in folder.split("/"):
        return None
    try:
        return decoded(folder), ClaimId(int(claim))
    except InvalidName:
        return None


def remove(location: str) -> None:
    """The folder and all in it; one that is gone already is fine."""
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
        if goes_on(name):
            yield from _below(filesystem, top, root, f"{folder}/{name}")
        elif found := claim_of(root, f"{root}/{folder}/{name}"):
            yield *found, f"{root}/{folder}/{name}"


def _folders(filesystem: fsspec.AbstractFileSystem, path: str) -> list[str]:
    entries = filesystem.ls(path, detail=True)
    return sorted(one["name"].rstrip("/").rpartition("/")[2] for one in entries if one["type"] == "directory")
