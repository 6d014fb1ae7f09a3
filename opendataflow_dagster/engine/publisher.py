"""The publisher of a run: chunks staged while a publish is in flight are published together in the next statement."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from ..ledger.claims import Publication
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost
from ..model.ids import DatasetId
from ..model.manifest import NewManifest
from ..protocol.publish import StagedClaim, publish_many
from .batch_thread import BatchThread
from .retry import PATIENCE_SECONDS, Retry


@dataclass(frozen=True, kw_only=True, eq=False)
class StagedChunk:
    """A chunk that is written and not yet published."""

    claim: Claim
    manifests: Mapping[DatasetId, NewManifest]
    #: When its work began, by this process's clock.
    began: float
    #: Its version. ClaimLost, or why its manifest is invalid: this chunk alone. Any other error ends the run.
    publication: Future[Publication] = field(default_factory=Future)


class Publisher:
    def __init__(self, ledger: Ledger, retry: Retry) -> None:
        self._ledger, self._retry = ledger, retry
        self._thread = BatchThread("odf-publisher", self._publish_all)
        self.add = self._thread.add

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error a publish may be stuck in a retry. The claims are released, so its result no longer matters.
        (self._thread.stop if kind else self._thread.finish)()

    def _publish_all(self, batch: list[StagedChunk]) -> None:
        try:
            self._publish(batch)
        except BaseException as error:
            for staged in batch:
                if not staged.publication.done():
                    staged.publication.set_exception(error)

    def _publish(self, batch: list[StagedChunk]) -> None:
        made = [StagedClaim(claim=staged.claim, manifests=staged.manifests) for staged in batch]
        lease = max(staged.claim.lease.total_seconds() for staged in batch)
        published = self._retry(lambda: publish_many(self._ledger, made), max(PATIENCE_SECONDS, lease))
        lost = {claim.claim_id for claim in published.lost}
        misfits = {misfit.claim.claim_id: misfit.error for misfit in published.misfits}
        versions = {(version.claim_id, version.datasetid): version for version in published.versions}
        for staged in batch:
            claim = staged.claim
            if claim.claim_id in lost:
                staged.publication.set_exception(ClaimLost([claim], "publish"))
            elif claim.claim_id in misfits:
                staged.publication.set_exception(misfits[claim.claim_id])
            else:
                staged.publication.set_result(versions[claim.claim_id, claim.outputs[0]])
