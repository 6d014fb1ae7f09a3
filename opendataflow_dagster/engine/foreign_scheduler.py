"""Runs of an external scheduler, which begins, renews, ends or fails each run by separate calls.

No connection is held between the calls: the ledger finds the claims by the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..insight.runs import Run, runs
from ..ledger import claims as ledger_claims
from ..ledger import job_runs, rows
from ..ledger.claims import Publication
from ..ledger.database import Ledger, Row
from ..model.claim import Claim
from ..model.errors import ClaimLost, InvalidInput, InvalidManifest
from ..model.ids import ClaimId, DataId, DatasetId, RunId
from ..model.manifest import ELSEWHERE, NewManifest
from ..protocol.claim import claim, claim_next
from ..protocol.job_run import begin_run, end_run, forget_run
from ..protocol.publish import Made, Published, publish_many
from ..protocol.release import fail_many
from ..protocol.renew import renew
from ..warehouse.listing import files_below


@dataclass(frozen=True, kw_only=True, slots=True)
class BegunRun:
    run_id: RunId
    claims: tuple[Claim, ...]


def begin(
    ledger: Ledger, jobid: str, dataid: str | None = None, *, count: int = 1, external_id: str | None = None
) -> BegunRun | None:
    """Claim this chunk, or the next `count` ones. None: nothing is ready, so no run was begun."""
    run_id = begin_run(ledger, jobid, external_id=external_id)
    taken: list[Claim] = []
    try:
        taken = claim_next(ledger, jobid, count, run_id) if dataid is None else [claim(ledger, jobid, dataid, run_id)]
    finally:
        if not taken:
            forget_run(ledger, run_id)
    return BegunRun(run_id=run_id, claims=tuple(taken)) if taken else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Extended:
    claims: tuple[Claim, ...]
    #: What the run claimed and no longer holds.
    lost: tuple[Claim, ...]


def extend(ledger: Ledger, run_id: int) -> Extended:
    """Renew the leases of all claims of the run."""
    run = _open_run(ledger, run_id)
    claims = _claims_of(ledger, run)
    if not claims.held:
        raise ClaimLost(claims.lost, "renew")
    return Extended(claims=tuple(renew(ledger, [held.claim for held in claims.held])), lost=tuple(claims.lost))


def end(
    ledger: Ledger, run_id: int, locations: Mapping[str, str] | None = None, *, row_count: int | None = None
) -> Published:
    """Publish all that the run holds. `locations` is the folder of the new version of each output that has a root.

    An invalid manifest is an error and stays claimed by the run: end the run again, or fail it.
    """
    run, places = _open_run(ledger, run_id), dict(locations or {})
    claims = _claims_of(ledger, run)
    if not claims.held and not claims.published:
        end_run(ledger, run.run_id, failed=True)
        raise ClaimLost(claims.lost, "end")
    if unknown := sorted(set(places) - {output for held in claims.held for output in held.claim.outputs}):
        raise InvalidInput(f"run {run_id} does not make {unknown[0]}; remove its location")
    made = [
        Made(
            claim=held.claim,
            manifests={output: _manifest(held, output, places, row_count) for output in held.claim.outputs},
        )
        for held in claims.held
    ]
    published = publish_many(ledger, made)
    if published.misfits:
        raise published.misfits[0].error
    published = replace(
        published, versions=(*claims.published, *published.versions), lost=(*claims.lost, *published.lost)
    )
    end_run(ledger, run.run_id, failed=bool(published.lost))
    return published


def outputs_of(ledger: Ledger, run_id: int) -> list[str]:
    """The DataSets that the run makes."""
    run = _open_run(ledger, run_id)
    with ledger.statement() as statement:
        return list[str](job_runs.outputs_of(statement, run.jobid))


def give_up(ledger: Ledger, run_id: int, reason: str) -> list[Claim]:
    """Fail all that the run holds."""
    run = _open_run(ledger, run_id)
    of_run = _claims_of(ledger, run)
    claims = [held.claim for held in of_run.held]
    try:
        if not claims:
            raise ClaimLost(of_run.lost, "fail")
        fail_many(ledger, claims, [reason] * len(claims))
    finally:
        end_run(ledger, run.run_id, failed=True)
    return claims


@dataclass(frozen=True, kw_only=True, slots=True)
class _Held:
    claim: Claim
    roots: Mapping[DatasetId, str | None]


def _open_run(ledger: Ledger, run_id: int) -> Run:
    (run,) = runs(ledger, run_ids=[run_id])
    if run.ended is not None:
        raise InvalidInput(f"run {run_id} of {run.jobid} has already ended; begin a new one")
    return run


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claims:
    """Everything that a run ever claimed."""

    held: list[_Held]
    #: By an earlier call of `end` that was interrupted.
    published: list[Publication]
    lost: list[Claim]


def _claims_of(ledger: Ledger, run: Run) -> _Claims:
    with ledger.transaction() as transaction:
        holds = _by_claim(job_runs.held_rows(transaction, run.run_id))
        begun = _by_claim(job_runs.claimed_rows(transaction, run.run_id))
        gone = [_claim(run, of_claim) for claim_id, of_claim in begun.items() if claim_id not in holds]
        published = ledger_claims.published_by(transaction, gone) if gone else []
    published_ids = {version.claim_id for version in published}
    return _Claims(
        held=[
            _Held(claim=_claim(run, of_claim), roots={DatasetId(row["output"]): row["location"] for row in of_claim})
            for of_claim in holds.values()
        ],
        published=published,
        lost=[claim for claim in gone if claim.claim_id not in published_ids],
    )


def _by_claim(rows_of_outputs: Sequence[Row]) -> dict[int, list[Row]]:
    by_claim: dict[int, list[Row]] = {}
    for row in rows_of_outputs:
        by_claim.setdefault(row["claim_id"], []).append(row)
    return by_claim


def _claim(run: Run, of_claim: Sequence[Row]) -> Claim:
    """From the rows of its outputs, which share everything else."""
    row = of_claim[0]
    return Claim(
        claim_id=ClaimId(row["claim_id"]),
        jobid=run.jobid,
        dataid=DataId(row["dataid"]),
        outputs=tuple(sorted(DatasetId(output["output"]) for output in of_claim)),
        attempt=row["attempt"],
        lease=row["lease"],
        lease_until=row["lease_until"],
        run_id=run.run_id,
        inputs=rows.input_versions(row["inputs"]),
    )


def _manifest(held: _Held, output: DatasetId, places: Mapping[str, str], row_count: int | None) -> NewManifest:
    if (place := places.get(output)) is None:
        if held.roots[output] is not None:
            raise InvalidInput(
                f"{output} has the root {held.roots[output]}; give the location of the new version below it"
            )
        return NewManifest(location=ELSEWHERE, row_count=row_count)
    if (files := files_below(place)) is None:
        raise InvalidManifest(
            f"{output}/{held.claim.dataid}: there is no folder {place}; write it, then end the run again"
        )
    return NewManifest(location=place, files=files, row_count=row_count)
