"""Names in paths, and paths in messages.

A name becomes one part of a path: a dataid may contain any printable character, a folder name may not.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

# File systems allow 255 bytes for a part; a suffix may follow.
_MAX_LENGTH: Final = 200


def in_project(file: str) -> str:
    """Relative to the folder of the project, in which every process runs."""
    with suppress(ValueError, OSError):
        return str(Path(file).relative_to(Path.cwd()))
    return file


def path_part(name: str) -> str:
    """Unique for each name, never empty, `.` or `..`, and without a slash, so it cannot leave its folder."""
    # The tilde is reserved for the digest below.
    encoded = quote(name, safe=" +,=@:").replace("~", "%7E")
    if encoded.startswith("."):
        encoded = f"%2E{encoded[1:]}"
    if len(encoded) <= _MAX_LENGTH:
        return encoded
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{encoded[: _MAX_LENGTH - len(digest) - 1]}~{digest}"
