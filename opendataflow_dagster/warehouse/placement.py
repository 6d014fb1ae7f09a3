"""Is every file of a manifest where it should be, with its size?"""

from __future__ import annotations

from collections.abc import Iterable

from ..model.manifest import File


def misplaced(location: str, files: Iterable[File]) -> str | None:
    """What is wrong, in words; None when all is there. One listing, however many files there are."""
    wanted = tuple(files)
    if not wanted:
        return None
    import fsspec  # slow to load, and many chunks list no files

    try:
        filesystem, root = fsspec.core.url_to_fs(location)
        filesystem.invalidate_cache(root)
        found = filesystem.find(root, detail=True)
    except Exception as error:  # every store has errors of its own; to the reader they are all the same no
        return f"{location} cannot be looked into ({type(error).__name__}: {error})"
    for file in wanted:
        entry = found.get(f"{root.rstrip('/')}/{file.path}")
        if entry is None:
            return f"{location}/{file.path} is missing"
        if entry["size"] != file.size:
            return f"{location}/{file.path} has {entry['size']} bytes, its manifest says {file.size}"
    return None


def gone(location: str, files: Iterable[File]) -> str | None:
    """The same, but only what is certain: a listing passes over what it may not see, so each file is asked for.

    A store that cannot be asked raises an error of its own.
    """
    wanted = tuple(files)
    if not misplaced(location, wanted):
        return None
    import fsspec

    filesystem, root = fsspec.core.url_to_fs(location)
    for file in wanted:
        try:
            size = filesystem.info(f"{root.rstrip('/')}/{file.path}")["size"]
        except FileNotFoundError:
            return f"{location}/{file.path} is missing"
        if size != file.size:
            return f"{location}/{file.path} has {size} bytes, its manifest says {file.size}"
    return None
