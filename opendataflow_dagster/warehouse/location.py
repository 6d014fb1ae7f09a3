"""Where the files of a chunk are: `<root>/<dataid, encoded>/<claim_id>-<datasetid, encoded>`.

Each output of a claim has a folder of its own, even if DataSets share a root. Release 0.1.0 named it `<claim_id>`.

An id may contain any printable character. Those that a file system, Hadoop or Spark would interpret (`..`, patterns,
`key=value`, hidden files) are written as %XX, so that an id never leaves its folder.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import quote, unquote

import fsspec

from ..model.errors import InvalidInput
from ..model.ids import ClaimId, DataId, DatasetId, data_id

# Most file systems allow names of 255 bytes. A longer dataid continues in a subfolder whose name starts with a mark
# that occurs neither in a claim's folder nor in an encoded dataid.
_PIECE = 200
_CONTINUES = "+"
_CLAIM = re.compile("([1-9][0-9]*)(?:-(.+))?")


def folder_of(root: str, datasetid: DatasetId, dataid: DataId, claim_id: ClaimId) -> str:
    if not root.strip("/ "):
        raise InvalidInput(f"chunk {dataid}: {root!r} is not a root; use a folder or URL")
    return f"{root.rstrip('/')}/{encoded(dataid)}/{claim_id}-{_output(datasetid)}"


def encoded(dataid: DataId) -> str:
    text = _quoted(data_id(dataid))
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    return f"/{_CONTINUES}".join(pieces)


def decoded(folder: str) -> DataId:
    """The dataid of this folder, which is relative to the root."""
    return data_id(unquote(folder.replace(f"/{_CONTINUES}", "")))


def claim_in(name: str, datasetid: DatasetId) -> ClaimId | None:
    """The claim of this folder; None if it is not the folder of a claim for this DataSet."""
    found = _CLAIM.fullmatch(name)
    return ClaimId(int(found[1])) if found and found[2] in (None, _output(datasetid)) else None


def continues(name: str) -> bool:
    return name.startswith(_CONTINUES)


def spark_path(location: str) -> str:
    """Absolute, because Spark may run in another working directory."""
    return location if "://" in location or location.startswith("file:") else str(Path(location).absolute())


def file_system(location: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system, with an empty cache, and the path as it writes it."""
    try:
        filesystem, path = fsspec.core.url_to_fs(location)
    except (ImportError, ValueError) as error:  # a protocol that is unknown, or whose package is not installed
        raise InvalidInput(f"{location} cannot be opened ({error}); install its package, or correct the URL") from error
    filesystem.invalidate_cache(path)
    return filesystem, path.rstrip("/")


def _output(datasetid: DatasetId) -> str:
    text = _quoted(datasetid)
    if len(text) <= _PIECE:
        return text
    # No encoded id has a tilde.
    return f"{text[:100]}~{hashlib.sha256(datasetid.encode()).hexdigest()}"


def _quoted(name: str) -> str:
    """Plain words, numbers and dates stay as they are."""
    if re.fullmatch("[A-Za-z0-9-][A-Za-z0-9._-]*", name):
        return name
    return re.sub("[~_.]", _percent, quote(name, safe=""))


def _percent(character: re.Match[str]) -> str:
    return f"%{ord(character.group()):02X}"
