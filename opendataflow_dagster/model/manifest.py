"""The manifest: the immutable record of a published version of a chunk."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from .errors import InvalidManifest
from .ids import DataId, DatasetId, JobId, ManifestId, is_storable
from .verdict import InputVersion

#: The location of a version whose DataSet has no root: its files are known to the program that wrote them only.
ELSEWHERE: Final = "elsewhere"


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    path: str  # relative to the manifest's location
    size: int
    digest: str | None = None

    def __post_init__(self) -> None:
        parts = self.path.split("/")
        if not self.path or self.path.startswith("/") or ".." in parts or "." in parts or not is_storable(self.path):
            raise InvalidManifest(
                f"{self.path!r} is no file of a manifest; give a path inside of its location, without '.' and '..'"
            )
        if self.size < 0:
            raise InvalidManifest(f"{self.path} has size {self.size}; a size is not negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewManifest:
    """What a producer says of the version it has made; the ledger adds the rest when it publishes."""

    location: str
    files: tuple[File, ...] = ()
    row_count: int | None = None
    schema_hash: str | None = None
    content_digest: str | None = None
    checks: tuple[CheckResult, ...] = ()

    def __post_init__(self) -> None:
        parts = self.location.split("/")
        if not self.location.strip("/ ") or ".." in parts or "." in parts or not is_storable(self.location):
            raise InvalidManifest(f"{self.location!r} is no location; give a folder or URL without '.' and '..'")
        object.__setattr__(self, "location", self.location.rstrip("/"))
        if self.row_count is not None and self.row_count < 0:
            raise InvalidManifest(f"{self.location} has {self.row_count} rows; a count is not negative")

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    def to_json(self) -> dict[str, object]:
        return {
            "location": self.location,
            "files": [{"path": f.path, "size": f.size, "digest": f.digest} for f in self.files],
            "bytes": self.bytes,
            "row_count": self.row_count,
            "schema_hash": self.schema_hash,
            "content_digest": self.content_digest,
            "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in self.checks],
        }

    def __str__(self) -> str:
        return json.dumps(self.to_json())


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    manifest_id: ManifestId
    datasetid: DatasetId
    dataid: DataId
    version: int
    jobid: JobId
    location: str
    files: tuple[File, ...] = field(repr=False)
    bytes: int
    row_count: int | None
    schema_hash: str | None
    content_digest: str | None
    checks: tuple[CheckResult, ...] = field(repr=False)
    inputs: tuple[InputVersion, ...] = field(repr=False)
    published: datetime
