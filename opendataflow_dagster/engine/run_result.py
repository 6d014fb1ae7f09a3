"""What became of the chunks of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ledger.claims import Publication
from ..model.claim import Claim
from ..model.ids import DataId
from ..model.manifest import Manifest, NewManifest
from ..model.verdict import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A chunk that was published."""

    claim: Claim
    manifest: NewManifest | Manifest
    publication: Publication
    seconds: float


@dataclass(kw_only=True)
class Outcome:
    """What became of the chunks of a run."""

    #: How many chunks the run has had, with those that it took along.
    asked: int = 0
    made: int = 0
    refused: dict[DataId, Verdict] = field(default_factory=dict)
    failed: dict[DataId, str] = field(default_factory=dict)
    lost: list[DataId] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.refused or self.failed or self.lost)

    def add(self, other: Outcome) -> None:
        self.made += other.made
        self.refused |= other.refused
        self.failed |= other.failed
        self.lost += other.lost

    def reasons(self) -> dict[DataId, str]:
        """Why each chunk that was not made was not."""
        return {
            **{one: str(verdict).partition(": ")[2] for one, verdict in self.refused.items()},
            **self.failed,
            **dict.fromkeys(self.lost, "CLAIM_LOST: resubmitted or taken by someone else meanwhile; it runs again"),
        }
