"""A DataSet: a named, partitioned set of data."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo, available_timezones

from .errors import InvalidDefinition
from .ids import DatasetId, code_version, dataset_id, is_storable
from .partitions import Partitions, TimePartitions
from .text import brief, did_you_mean

_TIME_OF_DAY: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
_SHORTEST, _LONGEST = timedelta(minutes=1), timedelta(days=366)


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
    #: What happens to a chunk when one of its inputs has a new version: it runs again, or is only marked as stale.
    on_new_input: Literal["rebuild", "mark"] = "mark"
    #: Whether two chunks may have the same content.
    repeats: bool = False
    timezone: str = "UTC"
    owner: str | None = None
    domain: str | None = None
    description: str | None = None
    #: The code that makes its next version; None: unknown, and a registration leaves what is known.
    code_version: str | None = None
    #: How long after the end of a partition its chunk is expected READY, by the clock of the time zone: "06:00".
    expected_by: str | None = None
    #: How old the newest READY chunk may be.
    fresh_within: timedelta | None = None

    def __post_init__(self) -> None:
        dataset_id(self.datasetid)
        self._check_deadlines()
        if self.code_version is not None:
            code_version(self.code_version, self.datasetid)
        try:
            ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError):
            raise InvalidDefinition(
                f"DataSet {self.datasetid}: {brief(self.timezone)} is not a time zone; "
                f"{did_you_mean(str(self.timezone), available_timezones(), 'use one such as UTC or Europe/Berlin')}"
            ) from None
        for name, words in (
            ("foreign_ready", (None, "trusted", "refused")),
            ("skipped_input", ("waits", "passes")),
            ("on_new_input", ("rebuild", "mark")),
        ):
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

    def _check_deadlines(self) -> None:
        if self.expected_by is not None:
            if not _TIME_OF_DAY.fullmatch(self.expected_by) or self.expected_by == "00:00":
                raise InvalidDefinition(
                    f"DataSet {self.datasetid}: expected_by is {brief(self.expected_by)}; "
                    f"write hours and minutes after the end of the partition, from 00:01 to 23:59, such as 06:00"
                )
            if not isinstance(self.partitions, TimePartitions):
                raise InvalidDefinition(
                    f"DataSet {self.datasetid}: expected_by needs hourly, daily, weekly or monthly partitions; "
                    f"declare them, or use fresh_within"
                )
        if self.fresh_within is not None and not _SHORTEST <= self.fresh_within <= _LONGEST:
            raise InvalidDefinition(
                f"DataSet {self.datasetid}: fresh_within is {self.fresh_within}; it must be 1 minute to 366 days"
            )

    def columns(self) -> dict[str, Any]:
        """Its row in the registry, without its address."""
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "partitions": self.partitions.to_json() if self.partitions else None,
            "foreign_ready": self.foreign_ready or ("trusted" if self.location is None else "refused"),
        }
