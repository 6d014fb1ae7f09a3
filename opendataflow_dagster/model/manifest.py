"""The manifest: the immutable record of a published version of a chunk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from .check import Check, Severity
from .errors import InvalidManifest
from .ids import DataId, DatasetId, JobId, ManifestId, is_storable
from .verdict import InputVersion

#: The location of a version whose DataSet declares none: the program knows where it wrote it, the ledger does not.
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
                f"{self.path!r} cannot be a file of a manifest; pass a path inside its location, without '.' and '..'"
            )
        if self.size < 0:
            raise InvalidManifest(f"{self.path} has size {self.size}; a size cannot be negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    name: str
    passed: bool
    #: The figures in words.
    detail: str = ""
    severity: Severity = "error"

    @property
    def is_warning(self) -> bool:
        return not self.passed and self.severity == "warn"

    @property
    def is_error(self) -> bool:
        """The version must not be published."""
        return not self.passed and self.severity == "error"

    def to_json(self) -> dict[str, object]:
        # Results of earlier releases have no severity.
        severity = {"severity": self.severity} if self.severity != "error" else {}
        return {"name": self.name, "passed": self.passed, "detail": self.detail, **severity}

    def __str__(self) -> str:
        return self.detail if self.name in self.detail else f"{self.name}: {self.detail}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A staged version, not validated yet."""

    location: str
    files: tuple[File, ...]
    row_count: int
    schema_hash: str
    content_digest: str | None
    checks: tuple[Check, ...]
    #: For each check the results of its aggregates.
    values: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NewManifest:
    """A version as its producer describes it; the ledger adds the rest when it publishes."""

    location: str
    files: tuple[File, ...] = ()
    row_count: int | None = None
    schema_hash: str | None = None
    content_digest: str | None = None
    checks: tuple[CheckResult, ...] = ()
    #: The code that made it; None: unknown.
    code_version: str | None = None

    def __post_init__(self) -> None:
        parts = self.location.split("/")
        if not self.location.strip("/ ") or ".." in parts or "." in parts or not is_storable(self.location):
            raise InvalidManifest(f"{self.location!r} is not a location; pass a folder or URL without '.' and '..'")
        object.__setattr__(self, "location", self.location.rstrip("/"))
        if self.row_count is not None and self.row_count < 0:
            raise InvalidManifest(f"{self.location} has {self.row_count} rows; a count cannot be negative")

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    def to_json(self) -> dict[str, object]:
        return {
            "location": self.location,
            "files": [{"path": file.path, "size": file.size, "digest": file.digest} for file in self.files],
            "bytes": self.bytes,
            "row_count": self.row_count,
            "schema_hash": self.schema_hash,
            "content_digest": self.content_digest,
            "checks": [result.to_json() for result in self.checks],
            "code_version": self.code_version,
        }

    def __str__(self) -> str:
        return json.dumps(self.to_json())


def made_by(code_version: str | None, manifests: Mapping[DatasetId, NewManifest]) -> dict[DatasetId, NewManifest]:
    return {name: replace(manifest, code_version=code_version) for name, manifest in manifests.items()}


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
    #: The code that made it; None: unknown.
    code_version: str | None = None


def as_new(manifest: Manifest) -> NewManifest:
    """What its producer described."""
    return NewManifest(
        location=manifest.location,
        files=manifest.files,
        row_count=manifest.row_count,
        schema_hash=manifest.schema_hash,
        content_digest=manifest.content_digest,
        checks=manifest.checks,
        code_version=manifest.code_version,
    )
