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
class Misfit:
    claim: Claim
    error: InvalidManifest


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What became of many: versions, the claims that were lost meanwhile, and those that are still held."""

    versions: tuple[Publication, ...]
    lost: tuple[Claim, ...]
    #: Their manifests do not fit their DataSets, each with what is wrong with it; nothing of them was published.
    misfits: tuple[Misfit, ...]


def publish(ledger: Ledger, claim: Claim, manifest: NewManifest | Mapping[DatasetId, NewManifest]) -> Publication:
    """The new version of the chunk (of its first output). Safe to repeat when the answer was lost on its way."""
    if isinstance(manifest, NewManifest):
        manifest = dict.fromkeys(claim.outputs, manifest)
    published = publish_many(ledger, [Made(claim=claim, manifests=manifest)])
    if published.lost:
        raise ClaimLost(list(published.lost), "publish")
    if published.misfits:
        raise published.misfits[0].error
    return published.versions[0]


def publish_many(ledger: Ledger, made: Sequence[Made]) -> Published:
    """Each claim by itself: what was lost or does not fit does not hold back the others. What can be seen without the
    ledger refuses all: a failed check, a file that is not there."""
    # A claim that is given twice is published once.
    made = list({one.claim.claim_id: one for one in made}.values())
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
    misfits = _misfits(made, found)
    missing = [one.claim for one in made if one.claim.claim_id not in by_claim]
    if missing:
        # Perhaps it was published, and only the answer did not arrive.
        with ledger.statement() as statement:
            for publication in ledger_claims.published_by(statement, missing):
                by_claim.setdefault(publication.claim_id, []).append(publication)
    return Published(
        versions=tuple(
            version for one in made for version in by_claim.get(one.claim.claim_id, ()) if version.version is not None
        ),
        lost=tuple(one for one in missing if one.claim_id not in by_claim),
        misfits=tuple(misfits),
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


def _misfits(made: Sequence[Made], found: Sequence[Publication]) -> list[Misfit]:
    """One for each claim, whatever else is wrong with its other outputs."""
    claims = {one.claim.claim_id: one for one in made}
    wrong = {one.claim_id: one for one in found if one.problem is not None}
    return [
        Misfit(claim=claims[one.claim_id].claim, error=InvalidManifest(_in_words(claims[one.claim_id], one)))
        for one in wrong.values()
    ]


def _in_words(made: Made, found: Publication) -> str:
    manifest, chunk = made.manifests[found.datasetid], f"{found.datasetid}/{made.claim.dataid}"
    match found.problem:
        case "OUTSIDE":
            return f"{chunk}: {manifest.location} lies outside of the root {found.root}; write it below its root"
        case "SAME_PLACE":
            return f"{chunk}: {manifest.location} is the place of an older version; write it into a folder of its own"
        case _:
            return (
                f"{chunk} has schema {manifest.schema_hash}, declared is {found.declared}; "
                f"write it as declared, or declare the new schema"
            )
