"""The Parquet files of a version: path, size and footer digest for the manifest, and their columns.

The footer describes every column, row group and page offset, with counts and (mostly) minima and maxima. It has a few
kilobytes however large the file is, so no data is read twice. It does not cover the values in the pages.
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

# A file ends with four bytes of length and the magic number; one read gets most footers as well.
_TAIL = 8
_MAGIC = b"PAR1"
_ONE_READ = 64 * 1024
# The key under which Spark stores its own schema in every file that it writes.
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def written_files(location: str) -> tuple[File, ...]:
    """The data files in a claim's folder, without Spark's markers and checksums."""
    filesystem, folder = file_system(location)
    files = []
    for entry in filesystem.ls(folder, detail=True):
        name = entry["name"].rpartition("/")[2]
        if entry["type"] == "file" and name.endswith(".parquet") and name[0] not in "._":
            digest = footer_digest(filesystem, entry["name"], entry["size"])
            files.append(File(path=name, size=entry["size"], digest=digest))
    return tuple(sorted(files, key=lambda file: file.path))


def footer_digest(filesystem: fsspec.AbstractFileSystem, path: str, size: int) -> str:
    tail: bytes = filesystem.cat_file(path, start=max(0, size - _ONE_READ), end=size)
    if tail[-4:] != _MAGIC:
        raise StageFailed(f"{path} is not a complete Parquet file; write it again")
    length = int.from_bytes(tail[-_TAIL:-4], "little") + _TAIL
    if length > len(tail):
        tail = filesystem.cat_file(path, start=size - length, end=size)
    return f"{DIGEST}:{hashlib.sha256(tail[-length:]).hexdigest()}"


def spark_schema(path: str) -> StructType | None:
    """The schema that Spark wrote into the footer, without the Spark job that would read it.

    None for a file that another program wrote or that cannot be read from here: Spark then reads it, or fails.
    """
    import pyarrow.parquet  # slow to import, and rarely needed

    try:
        filesystem, name = file_system(path)
        with filesystem.open(name) as opened:
            stored = (pyarrow.parquet.read_metadata(opened).metadata or {}).get(_SPARK_SCHEMA)
        schema = StructType.fromJson(json.loads(stored)) if stored else None
    except Exception:
        return None
    return schema if isinstance(schema, StructType) else None
