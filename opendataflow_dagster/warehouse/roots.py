"""Is the root of a DataSet there at all?"""

from __future__ import annotations


def missing(location: str) -> str | None:
    """What is wrong with it, in words; None: it is there."""
    import fsspec

    try:
        filesystem, root = fsspec.core.url_to_fs(location)
        filesystem.invalidate_cache(root)
        return None if filesystem.exists(root) else "it is not there"
    except Exception as error:  # every store has errors of its own; to the reader they are all the same no
        return f"it cannot be looked at ({type(error).__name__})"
