"""The files in a folder, as a manifest lists them."""

from __future__ import annotations

from ..model.errors import InvalidManifest
from ..model.manifest import File


def files_below(location: str) -> tuple[File, ...] | None:
    """Sorted, with their sizes; None: the folder does not exist."""
    from .location import file_system  # slow to import, and many scripts write elsewhere

    try:
        filesystem, root = file_system(location)
        if not filesystem.isdir(root):
            return None
        entries: dict[str, dict[str, int]] = filesystem.find(root, detail=True)
    except Exception as error:  # every store has its own errors
        raise InvalidManifest(f"{location} cannot be listed ({type(error).__name__}: {error}); try again") from error
    start = len(root) + 1
    return tuple(File(path=path[start:], size=entry["size"]) for path, entry in sorted(entries.items()))
