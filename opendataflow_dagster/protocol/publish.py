"""publish: fence, record the manifest, make READY, release the inputs; one short transaction that moves no bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ledger import claims as ledger_claims
from ..ledger.claims import Publication
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost, InvalidManifest
from ..model.ids import ChunkKey, DatasetId
from ..model.manifest import Manifest, NewManifest
from ..warehouse.placement import misplaced

# So many in one transaction: it holds a lock for each, and the server has room for some thousands.
_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """A claim and what was made under it: a manifest for each of its outputs."""

    claim: Claim
    manifests: Mapping[DatasetId, NewManifest]


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What became of many: versions, and the claims that were lost meanwhile."""

    versions: tuple[Publication, ...]
    lost: tuple[Claim, ...]


def publish(ledger: Ledger, claim: Claim, manifest: NewManifest | Mapping[DatasetId, NewManifest]) -> Publication:
    """The new version of the chunk (of its first output). Safe to repeat when the answer was lost on its way."""
    if isinstance(manifest, NewManifest):
        manifest = dict.fromkeys(claim.outputs, manifest)
    published = publish_many(ledger, [Made(claim=claim, manifests=manifest)])
    if published.lost:
        raise ClaimLost(list(published.lost), "publish")
    return published.versions[0]


def publish_many(ledger: Ledger, made: Sequence[Made]) -> Published:
    """Each claim by itself: what was lost does not hold back the others. A manifest that is not right refuses all."""
    for one in made:
        _refuse_wrong(one)
    found: list[Publication] = []
    for begin in range(0, len(made), _AT_ONCE):
        with ledger.statement() as statement:
            portion = made[begin : begin + _AT_ONCE]
            found += ledger_claims.publish(statement, [(one.claim, dict(one.manifests)) for one in portion])
    by_claim: dict[int, list[Publication]] = {}
    for publication in found:
        by_claim.setdefault(publication.claim_id, []).append(publication)
    _refuse_misfits(made, found)
    missing = [one.claim for one in made if one.claim.claim_id not in by_claim]
    if missing:
        # Perhaps it was published, and only the answer did not arrive.
        with ledger.statement() as statement:
            for publication in ledger_claims.published_by(statement, missing):
                by_claim.setdefault(publication.claim_id, []).append(publication)
    return Published(
        versions=tuple(version for one in made for version in by_claim.get(one.claim.claim_id, ())),
        lost=tuple(one for one in missing if one.claim_id not in by_claim),
    )


def _refuse_wrong(made: Made) -> None:
    chunk = f"{made.claim.jobid}/{made.claim.dataid}"
    if set(made.manifests) != set(made.claim.outputs):
        raise InvalidManifest(
            f"{chunk} was claimed for {', '.join(made.claim.outputs)}, but there are manifests for "
            f"{', '.join(sorted(made.manifests)) or 'nothing'}; give one for each output"
        )
    for datasetid, manifest in made.manifests.items():
        if failed := [check for check in manifest.checks if not check.passed]:
            figures = "; ".join(f"{check.name}: {check.detail}" for check in failed)
            raise InvalidManifest(
                f"{datasetid}/{made.claim.dataid} failed its checks ({figures}); "
                f"correct its data or its code, then resubmit it"
            )
        refuse_misplaced(ChunkKey(datasetid=datasetid, dataid=made.claim.dataid), manifest)


def refuse_misplaced(key: ChunkKey, manifest: NewManifest | Manifest) -> None:
    if wrong := misplaced(manifest.location, manifest.files):
        raise InvalidManifest(f"{key}: {wrong}; write it again, then publish it")


def _refuse_misfits(made: Sequence[Made], found: Sequence[Publication]) -> None:
    claims = {one.claim.claim_id: one for one in made}
    for one in found:
        if one.problem is None:
            continue
        claim = claims[one.claim_id]
        manifest, chunk = claim.manifests[one.datasetid], f"{one.datasetid}/{claim.claim.dataid}"
        if one.problem == "OUTSIDE":
            raise InvalidManifest(
                f"{chunk}: {manifest.location} lies outside of the root {one.root}; write it below its root"
            )
        raise InvalidManifest(
            f"{chunk} has schema {manifest.schema_hash}, declared is {one.declared}; "
            f"write it as declared, or declare the new schema"
        )
