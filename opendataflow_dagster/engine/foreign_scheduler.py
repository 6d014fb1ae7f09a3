"""Runs of a Job under a foreign scheduler, which begins, renews, ends or fails them in separate calls.

No connection stays open between the calls: each call finds the claims again by the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..ledger import claims as ledger_claims
from ..ledger import lookup, runs
from ..ledger.claims import Publication
from ..ledger.database import Ledger
from ..ledger.runs import ClaimWithRoots, JobRun
from ..model.claim import Claim
from ..model.errors import ClaimLost, InvalidInput, InvalidManifest
from ..model.ids import DatasetId, RunId
from ..model.manifest import ELSEWHERE, Manifest, NewManifest, as_new
from ..model.text import did_you_mean
from ..protocol.claim import claim, claim_next
from ..protocol.job_run import begin_run, discard_run, end_run
from ..protocol.publish import Published, StagedClaim, other_than_published, publish_many
from ..protocol.release import fail_many
from ..protocol.renew import renew
from ..warehouse.placement import files_below


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledRun:
    run_id: RunId
    claims: tuple[Claim, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RenewedRun:
    claims: tuple[Claim, ...]
    #: Claims of the run that it no longer holds.
    lost: tuple[Claim, ...]


def begin_scheduled_run(
    ledger: Ledger, jobid: str, dataid: str | None = None, *, count: int = 1, external_id: str | None = None
) -> ScheduledRun | None:
    """Claim this chunk, or the next ones. None: nothing is ready, and no run was created."""
    run_id = begin_run(ledger, jobid, external_id=external_id)
    claims: list[Claim] = []
    try:
        claims = claim_next(ledger, jobid, count, run_id) if dataid is None else [claim(ledger, jobid, dataid, run_id)]
    finally:
        if not claims:
            discard_run(ledger, run_id)
    return ScheduledRun(run_id=run_id, claims=tuple(claims)) if claims else None


def renew_scheduled_run(ledger: Ledger, run_id: int) -> RenewedRun:
    run_claims = _find_claims(ledger, run_id)
    if not run_claims.held:
        raise ClaimLost(run_claims.lost, "renew")
    return RenewedRun(
        claims=tuple(renew(ledger, [held.claim for held in run_claims.held])), lost=tuple(run_claims.lost)
    )


def end_scheduled_run(
    ledger: Ledger, run_id: int, locations: Mapping[str, str] | None = None, *, row_count: int | None = None
) -> Published:
    """Publish all that the run holds. `locations`: the folder of the new version of each output that has a root.

    A version that does not fit its DataSet is an error, and the run keeps that claim: end the run again, or fail it.
    """
    run_claims, folders = _find_claims(ledger, run_id), dict(locations or {})
    if not run_claims.held and not run_claims.published:
        end_run(ledger, run_claims.run.run_id, failed=True)
        raise ClaimLost(run_claims.lost, "end")
    outputs = {output for held in run_claims.held for output in held.claim.outputs}
    outputs |= {publication.datasetid for publication in run_claims.published}
    if unknown := sorted(set(folders) - outputs):
        advice = did_you_mean(unknown[0], outputs, "omit its location")
        raise InvalidInput(f"run {run_id} does not produce {unknown[0]}; {advice}")
    for publication, manifest in run_claims.published.items() if not run_claims.held else ():
        folder = folders.get(manifest.datasetid, manifest.location)
        if error := other_than_published(publication, manifest, replace(as_new(manifest), location=folder)):
            raise error
    published = publish_many(
        ledger,
        [
            StagedClaim(
                claim=held.claim,
                manifests={output: _manifest(held, output, folders, row_count) for output in held.claim.outputs},
            )
            for held in run_claims.held
        ],
    )
    if published.misfits:
        raise published.misfits[0].error
    published = replace(
        published, versions=(*run_claims.published, *published.versions), lost=(*run_claims.lost, *published.lost)
    )
    end_run(ledger, run_claims.run.run_id, failed=bool(published.lost))
    return published


def fail_scheduled_run(ledger: Ledger, run_id: int, reason: str) -> list[Claim]:
    """Fail all that the run holds."""
    run_claims = _find_claims(ledger, run_id)
    claims = [held.claim for held in run_claims.held]
    try:
        if not claims:
            raise ClaimLost(run_claims.lost, "fail")
        fail_many(ledger, claims, [reason] * len(claims))
    finally:
        end_run(ledger, run_claims.run.run_id, failed=True)
    return claims


def outputs_of_run(ledger: Ledger, run_id: int) -> list[str]:
    run = _require_open(ledger, run_id)
    with ledger.statement() as statement:
        return list(lookup.outputs_of(statement, run.jobid))


@dataclass(frozen=True, kw_only=True, slots=True)
class _RunClaims:
    """Every claim that a run has made."""

    run: JobRun
    held: list[ClaimWithRoots]
    #: By an earlier call that published and then failed to end the run.
    published: dict[Publication, Manifest]
    lost: list[Claim]


def _find_claims(ledger: Ledger, run_id: int) -> _RunClaims:
    run = _require_open(ledger, run_id)
    with ledger.transaction() as transaction:
        held = runs.held_claims(transaction, run)
        held_ids = {holding.claim.claim_id for holding in held}
        past = [begun for begun in runs.claims_begun(transaction, run) if begun.claim_id not in held_ids]
        published = ledger_claims.published_by(transaction, past) if past else {}
    published_ids = {publication.claim_id for publication in published}
    lost = [begun for begun in past if begun.claim_id not in published_ids]
    return _RunClaims(run=run, held=held, published=published, lost=lost)


def _require_open(ledger: Ledger, run_id: int) -> JobRun:
    with ledger.statement() as statement:
        run = runs.require(statement, run_id)
    if run.ended is not None:
        raise InvalidInput(f"run {run_id} of job {run.jobid} has already ended; begin a new run")
    return run


def _manifest(
    held: ClaimWithRoots, output: DatasetId, folders: Mapping[str, str], row_count: int | None
) -> NewManifest:
    if (folder := folders.get(output)) is None:
        if (root := held.roots[output]) is not None:
            raise InvalidInput(f"{output} has the root {root}; give the location of the new version below it")
        return NewManifest(location=ELSEWHERE, row_count=row_count)
    if (files := files_below(folder)) is None:
        raise InvalidManifest(
            f"{output}/{held.claim.dataid}: folder {folder} does not exist; write it, then end the run"
        )
    return NewManifest(location=folder, files=files, row_count=row_count)
