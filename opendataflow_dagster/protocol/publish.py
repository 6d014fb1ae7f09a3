"""publish: fence, record the manifest, make READY, release the inputs; one short transaction that moves no bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ledger import claims as ledger_claims
from ..ledger.claims import Publication, Refusal
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
    return next(one for one in published.versions if one.datasetid == claim.outputs[0])


def publish_many(ledger: Ledger, made: Sequence[Made]) -> Published:
    """Each claim by itself: what was lost or does not fit does not hold back the others. What can be seen without the
    ledger refuses all: a failed check, a file that is not there."""
    # A claim that is given twice is published once.
    made = list({one.claim.claim_id: one for one in made}.values())
    for one in made:
        _refuse_wrong(one)
    by_claim: dict[int, list[Publication]] = {}
    refused: dict[int, Refusal] = {}
    for begin in range(0, len(made), _AT_ONCE):
        with ledger.statement() as statement:
            portion = [(one.claim, one.manifests) for one in made[begin : begin + _AT_ONCE]]
            publications, refusals = ledger_claims.publish(statement, portion)
        for publication in publications:
            by_claim.setdefault(publication.claim_id, []).append(publication)
        # One for each claim, whatever else is wrong with its other outputs.
        refused |= {one.claim_id: one for one in refusals}
    answered = by_claim.keys() | refused.keys()
    missing = [one.claim for one in made if one.claim.claim_id not in answered]
    if missing:
        # Perhaps it was published, and only the answer did not arrive.
        with ledger.statement() as statement:
            for publication in ledger_claims.published_by(statement, missing):
                by_claim.setdefault(publication.claim_id, []).append(publication)
    return Published(
        versions=tuple(version for one in made for version in by_claim.get(one.claim.claim_id, ())),
        lost=tuple(one for one in missing if one.claim_id not in by_claim),
        misfits=tuple(
            Misfit(claim=one.claim, error=InvalidManifest(_in_words(one, refused[one.claim.claim_id])))
            for one in made
            if one.claim.claim_id in refused
        ),
    )


def _refuse_wrong(made: Made) -> None:
    if made.manifests.keys() != set(made.claim.outputs):
        raise InvalidManifest(
            f"{made.claim.jobid}/{made.claim.dataid} was claimed for {', '.join(made.claim.outputs)}, "
            f"but there are manifests for {', '.join(sorted(made.manifests)) or 'nothing'}; give one for each output"
        )
    for datasetid, manifest in made.manifests.items():
        if failed := [check for check in manifest.checks if not check.passed]:
            figures = "; ".join(str(check) for check in failed)
            raise InvalidManifest(
                f"{datasetid}/{made.claim.dataid} failed its checks ({figures}); "
                f"correct its data or its code, then resubmit it"
            )
        if manifest.files:  # which spares those without any a name that nobody needs
            refuse_misplaced(ChunkKey(datasetid=datasetid, dataid=made.claim.dataid), manifest)


def refuse_misplaced(key: ChunkKey, manifest: NewManifest | Manifest) -> None:
    if wrong := misplaced(manifest.location, manifest.files):
        raise InvalidManifest(f"{key}: {wrong}; write it again, then publish it")


def _in_words(made: Made, refused: Refusal) -> str:
    manifest, chunk = made.manifests[refused.datasetid], f"{refused.datasetid}/{made.claim.dataid}"
    match refused.problem:
        case "OUTSIDE":
            return f"{chunk}: {manifest.location} lies outside of the root {refused.root}; write it below its root"
        case "SAME_PLACE":
            return f"{chunk}: {manifest.location} is the place of an older version; write it into a folder of its own"
        case _:
            return (
                f"{chunk} has schema {manifest.schema_hash}, declared is {refused.declared}; "
                f"write it as declared, or declare the new schema"
            )
