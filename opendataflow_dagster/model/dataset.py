"""A DataSet: a named, partitioned set of data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from .errors import InvalidDefinition
from .ids import DatasetId, code_version, dataset_id, is_storable
from .partitions import Partitions
from .text import brief, did_you_mean


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    datasetid: DatasetId
    #: The root folder or URL in this environment; None: only the producer knows it.
    location: str | None = None
    #: None: any dataid.
    partitions: Partitions | None = None
    schema_hash: str | None = None
    #: Whether consumers accept a chunk that is READY without a manifest. Default: only if no location is declared.
    foreign_ready: Literal["trusted", "refused"] | None = None
    #: Whether consumers of a SKIPPED chunk wait, or run without it.
    skipped_input: Literal["waits", "passes"] = "waits"
    #: Whether two chunks may have the same content.
    repeats: bool = False
    timezone: str = "UTC"
    owner: str | None = None
    domain: str | None = None
    description: str | None = None
    #: The code that makes its next version; None: unknown, and a registration leaves what is known.
    code_version: str | None = None

    def __post_init__(self) -> None:
        dataset_id(self.datasetid)
        if self.code_version is not None:
            code_version(self.code_version, self.datasetid)
        try:
            ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError):
            raise InvalidDefinition(
                f"DataSet {self.datasetid}: {brief(self.timezone)} is not a time zone; "
                f"{did_you_mean(str(self.timezone), available_timezones(), 'use one such as UTC or Europe/Berlin')}"
            ) from None
        for name, words in (("foreign_ready", (None, "trusted", "refused")), ("skipped_input", ("waits", "passes"))):
            if getattr(self, name) not in words:
                choices = " or ".join(filter(None, words))
                raise InvalidDefinition(
                    f"DataSet {self.datasetid}: {name} is {brief(getattr(self, name))}; it must be {choices}"
                )
        if self.location is not None:
            parts = self.location.split("/")
            if not self.location.strip("/ ") or ".." in parts or "." in parts or not is_storable(self.location):
                raise InvalidDefinition(
                    f"DataSet {self.datasetid}: {brief(self.location)} is not a root; "
                    f"use a folder or URL without . and .."
                )
            object.__setattr__(self, "location", self.location.rstrip("/"))

    def columns(self) -> dict[str, Any]:
        """Its row in the registry, without its address."""
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "partitions": self.partitions.to_json() if self.partitions else None,
            "foreign_ready": self.foreign_ready or ("trusted" if self.location is None else "refused"),
        }
