"""Whether the root of a DataSet exists."""

from __future__ import annotations


def missing(location: str) -> str | None:
    """What is wrong with it, or None."""
    from .location import file_system  # slow to import

    try:
        filesystem, root = file_system(location)
        return None if filesystem.exists(root) else "it does not exist"
    except Exception as error:  # every store has its own errors
        return f"it cannot be reached ({type(error).__name__})"
