"""The files that somebody left in a folder, as a manifest lists them."""

from __future__ import annotations

from ..model.errors import InvalidManifest
from ..model.manifest import File


def files_below(location: str) -> tuple[File, ...] | None:
    """With their sizes, in order; None: there is no such folder."""
    from .location import file_system  # slow to load, and many scripts write elsewhere

    try:
        filesystem, root = file_system(location)
        if not filesystem.isdir(root):
            return None
        found: dict[str, dict[str, int]] = filesystem.find(root, detail=True)
    except Exception as error:  # every store has errors of its own; to the reader they are all the same no
        raise InvalidManifest(
            f"{location} cannot be looked into ({type(error).__name__}: {error}); try again"
        ) from error
    start = len(root) + 1
    return tuple(File(path=path[start:], size=entry["size"]) for path, entry in sorted(found.items()))
