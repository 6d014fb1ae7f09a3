"""Whether the files of a manifest are in place, with their sizes."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.manifest import File


def misplaced(location: str, files: Iterable[File]) -> str | None:
    """What is wrong, or None. Takes one listing, however many files there are."""
    expected = tuple(files)
    if not expected:
        return None
    from .location import file_system  # slow to import, and many chunks list no files

    try:
        filesystem, root = file_system(location)
        entries = filesystem.find(root, detail=True)
    except Exception as error:  # every store has its own errors
        return f"{location} cannot be listed ({type(error).__name__}: {error})"
    for file in expected:
        entry = entries.get(f"{root}/{file.path}")
        if problem := _problem(location, file, entry["size"] if entry else None):
            return problem
    return None


def gone(location: str, files: Iterable[File]) -> str | None:
    """As `misplaced`, but only what is certain: a listing omits what it may not see, so each file is looked up.

    A store that cannot be reached raises its own error.
    """
    expected = tuple(files)
    if not misplaced(location, expected):
        return None
    from .location import file_system

    filesystem, root = file_system(location)
    for file in expected:
        try:
            size = filesystem.info(f"{root}/{file.path}")["size"]
        except FileNotFoundError:
            size = None
        if problem := _problem(location, file, size):
            return problem
    return None


def _problem(location: str, file: File, size: int | None) -> str | None:
    if size is None:
        return f"{location}/{file.path} is missing"
    if size != file.size:
        return f"{location}/{file.path} has {size} bytes, its manifest says {file.size}"
    return None
