"""A name as one part of a path. A dataid may hold anything printable; a folder may not."""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import quote

# File systems take 255 bytes for a part; a suffix may follow.
_MAX_LENGTH: Final = 200


def path_part(name: str) -> str:
    """Different for different names, never empty, `.` or `..`, and without a slash: it cannot leave its folder."""
    # The tilde is ours, see below.
    encoded = quote(name, safe=" +,=@:").replace("~", "%7E")
    if encoded.startswith("."):
        encoded = f"%2E{encoded[1:]}"
    if len(encoded) <= _MAX_LENGTH:
        return encoded
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{encoded[: _MAX_LENGTH - len(digest) - 1]}~{digest}"
