"""The files of a version as a manifest lists them: path, size, and a digest of the Parquet footer; and their columns.

The footer names every column, row group and page offset, with counts and (mostly) the least and greatest values. It is
a few kilobytes however large the file is, so that no data is read twice; it does not cover the values in the pages.
"""

from __future__ import annotations

import hashlib
import json

import fsspec
from pyspark.sql.types import StructType

from ..model.errors import StageFailed
from ..model.manifest import File
from .location import file_system

DIGEST = "parquet-footer-sha256"

# Four bytes of length and the magic word end a file; most footers come along with this one read.
_TAIL = 8
_MAGIC = b"PAR1"
_ONE_READ = 64 * 1024
# Where Spark keeps, in every file that it writes, the columns as it knows them.
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def written_files(location: str) -> tuple[File, ...]:
    """What Spark has left in the folder of a claim; its marks and checksums are not data."""
    filesystem, folder = file_system(location)
    found = []
    for entry in filesystem.ls(folder, detail=True):
        name = entry["name"].rpartition("/")[2]
        if entry["type"] == "file" and name.endswith(".parquet") and name[0] not in "._":
            digest = footer_digest(filesystem, entry["name"], entry["size"])
            found.append(File(path=name, size=entry["size"], digest=digest))
    return tuple(sorted(found, key=lambda file: file.path))


def footer_digest(filesystem: fsspec.AbstractFileSystem, path: str, size: int) -> str:
    begin = max(0, size - _ONE_READ)
    tail: bytes = filesystem.cat_file(path, start=begin, end=size)
    if tail[-4:] != _MAGIC:
        raise StageFailed(f"{path} does not end like a Parquet file; write it again")
    length = int.from_bytes(tail[-_TAIL:-4], "little") + _TAIL
    if length > len(tail):
        tail = filesystem.cat_file(path, start=size - length, end=size)
    return f"{DIGEST}:{hashlib.sha256(tail[-length:]).hexdigest()}"


def spark_schema(path: str) -> StructType | None:
    """The columns as Spark wrote them into the footer, which it would read in a job of its own.

    None of a file that something else wrote, or that cannot be read from here: Spark finds out, or says what is wrong.
    """
    import pyarrow.parquet  # takes as long as many chunks; few need it

    try:
        filesystem, name = file_system(path)
        with filesystem.open(name) as opened:
            said = (pyarrow.parquet.read_metadata(opened).metadata or {}).get(_SPARK_SCHEMA)
        found = StructType.fromJson(json.loads(said)) if said else None
    except Exception:
        return None
    return found if isinstance(found, StructType) else None
