"""Which files are in a place, and whether those of a manifest are, with their sizes and below their root."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ..model.errors import InvalidManifest
from ..model.manifest import File


def misplaced(location: str, files: Iterable[File], root_of: Callable[[], str | None]) -> str | None:
    """What is wrong, or None. `root_of` looks up the root; it is called only if there is a symlink."""
    expected, folder = tuple(files), _local(location)
    links: list[str] = []
    try:
        if folder is not None:
            sizes, links = _on_disk(folder, expected)
        else:
            sizes = _listed(location) if expected else {}
    except Exception as error:  # every store has its own errors
        return f"{location} cannot be listed ({type(error).__name__}: {error})"
    if links and (root := root_of()) is not None:
        for link in links:
            if leads_out(link, root):
                return f"{link} leads out of its root {root} through a symlink"
    problems = (_problem(location, file, sizes.get(file.path)) for file in expected)
    return next((problem for problem in problems if problem), None)


def leads_out(location: str, root: str) -> bool:
    """Whether a symlink below the root leads out of it. Only local file systems have symlinks."""
    local, local_root = _local(location), _local(root)
    if local is None or local_root is None:
        return False
    path, top = Path(local).absolute(), Path(local_root).absolute()
    # Path.resolve would raise an error for a loop of symlinks.
    return path.is_relative_to(top) and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top))


def without_doubled_slashes(location: str) -> str:
    """/w//raw is /w/raw. In the name of an object, // has a meaning."""
    local = _local(location)
    if local is None:
        return location
    return ("file://" if location.startswith("file:") else "") + re.sub("//+", "/", local)


def _local(location: str) -> str | None:
    if location.startswith("file:"):
        return re.sub("^file:/+", "/", location)
    return None if "://" in location else location


def _listed(location: str) -> dict[str, int]:
    """The size of every file below it, by one listing: a look at each would be a request each."""
    from .location import file_system  # slow to import

    filesystem, root = file_system(location)
    entries = filesystem.find(root, detail=True)
    return {path.removeprefix(f"{root}/"): entry["size"] for path, entry in entries.items()}


def _on_disk(folder: str, files: Iterable[File]) -> tuple[dict[str, int], list[str]]:
    """The sizes of the files, and which folders and files are reached through a symlink."""
    sizes: dict[str, int] = {}
    folders = {folder}
    links: list[str] = []
    for file in files:
        path = f"{folder}/{file.path}"
        if "/" in file.path:
            folders.add(path.rpartition("/")[0])
        with suppress(FileNotFoundError, NotADirectoryError):
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                links.append(path)
                found = os.stat(path)  # noqa: PTH116 - half the time of pathlib
            sizes[file.path] = found.st_size
    return sizes, [*(path for path in folders if _has_symlink(path)), *links]


def _has_symlink(folder: str) -> bool:
    """As a comparison with its real path, in a third of the time: this is asked for every input of every claim."""
    try:
        opened = os.open(folder, os.O_PATH)
    except (AttributeError, OSError):  # another system than Linux, or there is nothing
        return os.path.realpath(folder) != folder
    try:
        return os.readlink(f"/proc/self/fd/{opened}") != folder  # noqa: PTH115 - half the time of pathlib
    except OSError:
        return os.path.realpath(folder) != folder
    finally:
        os.close(opened)


def gone(location: str, files: Iterable[File]) -> str | None:
    """As `misplaced`, but only what is certain: a listing omits what it may not see, so each file is looked up.

    A store that cannot be reached raises its own error.
    """
    expected = tuple(files)
    if not misplaced(location, expected, lambda: None):
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


def missing(root: str) -> str | None:
    """What is wrong with the root of a DataSet, or None."""
    from .location import file_system

    try:
        filesystem, path = file_system(root)
        return None if filesystem.exists(path) else "it does not exist"
    except Exception as error:  # every store has its own errors
        return f"it cannot be reached ({type(error).__name__})"


def files_below(location: str) -> tuple[File, ...] | None:
    """As a manifest lists them, sorted; None: the folder does not exist."""
    from .location import file_system

    try:
        filesystem, root = file_system(location)
        sizes = _listed(location) if filesystem.isdir(root) else None
    except Exception as error:  # every store has its own errors
        raise InvalidManifest(f"{location} cannot be listed ({type(error).__name__}: {error}); try again") from error
    return None if sizes is None else tuple(File(path=path, size=size) for path, size in sorted(sizes.items()))
