"""Whether the files of a manifest are in place, with their sizes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress

from ..model.manifest import File


def misplaced(location: str, files: Iterable[File]) -> str | None:
    """What is wrong, or None."""
    expected = tuple(files)
    if not expected:
        return None
    try:
        sizes = _listed(location) if "://" in location else _on_disk(location, expected)
    except Exception as error:  # every store has its own errors
        return f"{location} cannot be listed ({type(error).__name__}: {error})"
    problems = (_problem(location, file, sizes.get(file.path)) for file in expected)
    return next((problem for problem in problems if problem), None)


def _listed(location: str) -> dict[str, int]:
    """The size of every file below it, by one listing: a look at each would be a request each."""
    from .location import file_system  # slow to import

    filesystem, root = file_system(location)
    entries = filesystem.find(root, detail=True)
    return {path.removeprefix(f"{root}/"): entry["size"] for path, entry in entries.items()}


def _on_disk(location: str, files: Iterable[File]) -> dict[str, int]:
    sizes = {}
    for file in files:
        with suppress(FileNotFoundError, NotADirectoryError):
            sizes[file.path] = os.stat(f"{location}/{file.path}").st_size  # noqa: PTH116 - half the time of pathlib
    return sizes


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


def leads_out(location: str, root: str) -> bool:
    """Whether a symlink below the root leads out of it. Only local file systems have symlinks."""
    path, top = (re.sub("^file:/+", "/", name) for name in (location, root))
    if "://" in path:
        return False
    real = os.path.realpath(path)
    return real != path and not f"{real}/".startswith(f"{os.path.realpath(top)}/")


def _problem(location: str, file: File, size: int | None) -> str | None:
    if size is None:
        return f"{location}/{file.path} is missing"
    if size != file.size:
        return f"{location}/{file.path} has {size} bytes, its manifest says {file.size}"
    return None
