"""publish: fence, record the manifest, make READY, release the inputs; one short transaction that moves no bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial

from ..ledger import claims as ledger_claims
from ..ledger import lookup
from ..ledger.claims import Publication, Refusal
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.claim import Claim
from ..model.errors import ClaimLost, InvalidManifest
from ..model.ids import ChunkKey, DatasetId
from ..model.manifest import Manifest, NewManifest, as_new
from ..warehouse.placement import misplaced

# A transaction holds a lock for each chunk, and the server has space for some thousands.
_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedClaim:
    """A claim and what was staged under it: a manifest for each of its outputs."""

    claim: Claim
    manifests: Mapping[DatasetId, NewManifest]


@dataclass(frozen=True, kw_only=True, slots=True)
class Misfit:
    """A claim that is still held, and why what was staged under it cannot be published."""

    claim: Claim
    error: InvalidManifest


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """What became of many: new versions, claims that were lost, and claims whose manifests cannot be published."""

    versions: tuple[Publication, ...]
    lost: tuple[Claim, ...]
    misfits: tuple[Misfit, ...]


def publish(ledger: Ledger, claim: Claim, manifest: NewManifest | Mapping[DatasetId, NewManifest]) -> Publication:
    """The new version of the chunk (of its first output). Safe to repeat when the answer was lost; a repetition with
    other files is an error."""
    if isinstance(manifest, NewManifest):
        manifest = dict.fromkeys(claim.outputs, manifest)
    published = publish_many(ledger, [StagedClaim(claim=claim, manifests=manifest)])
    if published.lost:
        raise ClaimLost(list(published.lost), "publish")
    if published.misfits:
        raise published.misfits[0].error
    return next(version for version in published.versions if version.datasetid == claim.outputs[0])


def publish_many(ledger: Ledger, staged: Sequence[StagedClaim]) -> Published:
    """Each claim by itself: one that was lost or does not fit does not hold back the others."""
    # A claim that is given twice is published once.
    by_id = {item.claim.claim_id: item for item in staged}
    roots = lookup.roots(ledger)
    errors = {claim_id: error for claim_id, item in by_id.items() if (error := _misfit(item, roots))}
    if len(by_id) < len(staged):
        for item in staged:
            if dict(item.manifests) != dict(by_id[item.claim.claim_id].manifests):
                errors[item.claim.claim_id] = _ambiguous(item.claim)
    fitting = [item for claim_id, item in by_id.items() if claim_id not in errors]
    versions: dict[int, list[Publication]] = {}
    for begin in range(0, len(fitting), _AT_ONCE):
        publications, refusals = _publish_portion(ledger, fitting[begin : begin + _AT_ONCE])
        for publication in publications:
            versions.setdefault(publication.claim_id, []).append(publication)
        errors |= {refusal.claim_id: _refused(by_id[refusal.claim_id], refusal) for refusal in refusals}
    missing = [item.claim for claim_id, item in by_id.items() if claim_id not in versions and claim_id not in errors]
    if missing:
        # Perhaps it was published before, and only the answer did not arrive.
        with ledger.statement() as statement:
            past = ledger_claims.published_by(statement, missing)
        for publication, manifest in past.items():
            versions.setdefault(publication.claim_id, []).append(publication)
            given = by_id[publication.claim_id].manifests[manifest.datasetid]
            if error := other_than_published(publication, manifest, given):
                errors[publication.claim_id] = error
    return Published(
        versions=tuple(
            version for claim_id in by_id if claim_id not in errors for version in versions.get(claim_id, ())
        ),
        lost=tuple(claim for claim in missing if claim.claim_id not in versions),
        misfits=tuple(Misfit(claim=by_id[claim_id].claim, error=error) for claim_id, error in errors.items()),
    )


@gives_way
def _publish_portion(ledger: Ledger, portion: Sequence[StagedClaim]) -> tuple[list[Publication], list[Refusal]]:
    with ledger.statement() as statement:
        return ledger_claims.publish(statement, [(item.claim, item.manifests) for item in portion])


def _misfit(staged: StagedClaim, roots: Callable[[DatasetId], str | None]) -> InvalidManifest | None:
    """What the warehouse shows: a missing manifest, a failed check, a file that is not in its place."""
    claim = staged.claim
    if staged.manifests.keys() != set(claim.outputs):
        return InvalidManifest(
            f"{claim.jobid}/{claim.dataid} was claimed for {', '.join(claim.outputs)}, but there are manifests for "
            f"{', '.join(sorted(staged.manifests)) or 'nothing'}; give one for each output"
        )
    for datasetid, manifest in staged.manifests.items():
        if failed := [check for check in manifest.checks if check.is_error]:
            figures = "; ".join(str(check) for check in failed)
            return InvalidManifest(
                f"{datasetid}/{claim.dataid} failed its checks ({figures}); "
                f"correct its data or its code, then resubmit it"
            )
        if wrong := misplaced(manifest.location, manifest.files, partial(roots, datasetid)):
            return InvalidManifest(f"{datasetid}/{claim.dataid}: {wrong}; write it again, then publish it")
    return None


def _ambiguous(claim: Claim) -> InvalidManifest:
    return InvalidManifest(
        f"{claim.jobid}/{claim.dataid} was given twice, with different manifests; publish a claim once"
    )


def other_than_published(publication: Publication, manifest: Manifest, given: NewManifest) -> InvalidManifest | None:
    """Why this is not what the claim has published."""
    before = as_new(manifest)
    different = [
        field.name for field in fields(NewManifest) if getattr(given, field.name) != getattr(before, field.name)
    ]
    if not different:
        return None
    return InvalidManifest(
        f"{manifest.datasetid}/{manifest.dataid}: claim {publication.claim_id} published version {manifest.version} "
        f"from {manifest.location} before, with another {', '.join(different)}; "
        f"resubmit the chunk to publish a new version"
    )


def refuse_misplaced(key: ChunkKey, manifest: NewManifest | Manifest, root_of: Callable[[], str | None]) -> None:
    if wrong := misplaced(manifest.location, manifest.files, root_of):
        raise InvalidManifest(f"{key}: {wrong}; write it again, then publish it")


def _refused(staged: StagedClaim, refusal: Refusal) -> InvalidManifest:
    manifest, chunk = staged.manifests[refusal.datasetid], f"{refusal.datasetid}/{staged.claim.dataid}"
    match refusal.problem:
        case "OUTSIDE":
            problem = f"{manifest.location} is outside its root {refusal.root}; write it below its root"
        case "UNREADABLE":
            problem = (
                f"the description of the files at {manifest.location} is not readable; give each a path and a size"
            )
        case "SAME_PLACE":
            problem = f"{manifest.location} holds an older version; write it into a folder of its own"
        case "OTHER_SCHEMA":
            problem = (
                f"schema {manifest.schema_hash} was written, declared is {refusal.declared}; "
                f"write it as declared, or declare the new schema"
            )
    return InvalidManifest(f"{chunk}: {problem}")
