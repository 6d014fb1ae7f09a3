"""Where the files of a chunk lie: `<root>/<dataid, encoded>/<claim_id>`.

The folder of a claim belongs to it alone. A dataid may hold anything printable; what a file system, Hadoop or Spark
could take for something else (a folder above, a pattern, `key=value`, a hidden file) is written as %XX, so that a
dataid never leaves its folder and can be read back from it.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote

import fsspec

from ..model.errors import InvalidInput
from ..model.ids import ClaimId, DataId, data_id

# A name in a folder has at most 255 bytes nearly everywhere; a longer dataid goes on in a folder below, after a mark
# that is neither a claim's name nor within an encoded text.
_PIECE = 200
_GOES_ON = "+"
_CLAIM = re.compile("[1-9][0-9]*")


def folder_of(root: str, dataid: DataId, claim_id: ClaimId) -> str:
    if not root.strip("/ "):
        raise InvalidInput(f"{root!r} is no root for chunk {dataid}; give a folder or URL")
    return f"{root.rstrip('/')}/{encoded(dataid)}/{claim_id}"


def encoded(dataid: DataId) -> str:
    text = re.sub("[~_.]", _percent, quote(data_id(dataid), safe=""), count=0) if _is_odd(dataid) else dataid
    pieces = [text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE)]
    return f"/{_GOES_ON}".join(pieces)


def decoded(folder: str) -> DataId:
    """The dataid that lies in this folder, given relative to the root."""
    return data_id(unquote(folder.replace(f"/{_GOES_ON}", "")))


def is_claim(name: str) -> bool:
    return _CLAIM.fullmatch(name) is not None


def goes_on(name: str) -> bool:
    return name.startswith(_GOES_ON)


def spark_path(location: str) -> str:
    """As Spark must be told: its own current folder may be another."""
    return location if "://" in location or location.startswith("file:") else str(Path(location).absolute())


def file_system(location: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system, and the path in its words, without what it remembers of an earlier look."""
    filesystem, path = fsspec.core.url_to_fs(location)
    filesystem.invalidate_cache(path)
    return filesystem, path.rstrip("/")


def _is_odd(dataid: str) -> bool:
    """Most are plain words, numbers and dates, which stay as they are."""
    return re.fullmatch("[A-Za-z0-9-][A-Za-z0-9._-]*", dataid) is None


def _percent(found: re.Match[str]) -> str:
    return f"%{ord(found.group()):02X}"
