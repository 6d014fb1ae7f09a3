"""How long the files of old versions and failed attempts are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from .errors import InvalidDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Retention:
    """An old version is removed once it is not among the newest `versions` and was not current within `time`. Without
    either setting, all versions stay. The current version, and those that a live claim reads, always stay."""

    versions: int | None = None
    time: timedelta | None = None
    #: How long the files of a failed attempt are kept for inspection.
    failed: timedelta = timedelta(days=7)
    #: How long a reader without a claim may go on reading a version that it has just looked up.
    grace: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        if self.versions is not None and self.versions < 1:
            raise InvalidDefinition(
                f"a retention of {self.versions} versions would remove the current one; keep 1 or more"
            )
        for name, span in (("time", self.time), ("failed", self.failed), ("grace", self.grace)):
            if span is not None and span < timedelta(0):
                raise InvalidDefinition(f"a retention's {name} of {span} is negative; use a positive time")
