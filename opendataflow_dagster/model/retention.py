"""How long the files of old versions and of failed attempts stay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from .errors import InvalidDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Retention:
    """An old version goes when it is neither among the newest `versions` nor was current within `time`. With neither
    given, every version stays. The current version and those that a live claim reads stay whatever is said here."""

    versions: int | None = None
    time: timedelta | None = None
    #: What an attempt left that did not become a version stays so long, to be looked at.
    failed: timedelta = timedelta(days=7)
    #: Who has just looked up a version may read it so long, without a claim that pins it.
    grace: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        if self.versions is not None and self.versions < 1:
            raise InvalidDefinition(
                f"a retention of {self.versions} versions would drop the current one; keep 1 or more"
            )
        for name, span in (("time", self.time), ("failed", self.failed), ("grace", self.grace)):
            if span is not None and span < timedelta(0):
                raise InvalidDefinition(f"a retention's {name} of {span} is in the future; give a positive time")
