"""What became of the chunks of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..ledger.claims import Publication
from ..model.claim import Claim
from ..model.ids import DataId, DatasetId
from ..model.manifest import NewManifest
from ..model.verdict import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkResult:
    """The outcome of one claimed chunk."""

    claim: Claim
    status: Literal["published", "failed", "lost"]
    #: Why it was not published.
    reason: str | None = None
    #: The lines of the author's files in which it failed.
    traceback: str | None = None
    #: What was written.
    manifests: Mapping[DatasetId, NewManifest] = field(default_factory=dict)
    #: The version of its first output.
    publication: Publication | None = None
    seconds: float = 0.0


@dataclass(kw_only=True)
class RunResult:
    published: list[DataId] = field(default_factory=list)
    refused: dict[DataId, Verdict] = field(default_factory=dict)
    failed: dict[DataId, str] = field(default_factory=dict)
    #: Of those that failed in the author's code.
    tracebacks: dict[DataId, str] = field(default_factory=dict)
    lost: list[DataId] = field(default_factory=list)
    #: The last claim found the job at its concurrency limit.
    at_limit: bool = False

    @property
    def ok(self) -> bool:
        return not (self.refused or self.failed or self.lost)

    def add(self, chunk: ChunkResult) -> None:
        dataid = chunk.claim.dataid
        match chunk.status:
            case "published":
                self.published.append(dataid)
            case "failed":
                self.failed[dataid] = f"FAILED: {chunk.reason}"
                if chunk.traceback:
                    self.tracebacks[dataid] = chunk.traceback
            case "lost":
                self.lost.append(dataid)

    def reasons(self) -> dict[DataId, str]:
        """Why each chunk that was not published was not."""
        return {
            **{dataid: str(verdict).partition(": ")[2] for dataid, verdict in self.refused.items()},
            **self.failed,
            **dict.fromkeys(self.lost, "CLAIM_LOST: the claim was lost to a RESUBMIT or a newer claim; it runs again"),
        }
