"""attend: a foreign scheduler begins, renews, ends or fails a run of a Job, in calls of its own.

Between the calls nobody holds a connection: the claims are found again by the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..insight.runs import Run, runs
from ..ledger import claims as ledger_claims
from ..ledger import rows
from ..ledger.claims import Publication
from ..ledger.database import Ledger, Row
from ..model.claim import Claim
from ..model.errors import ClaimLost, InvalidInput, InvalidManifest
from ..model.ids import ClaimId, DataId, DatasetId, RunId
from ..model.manifest import NewManifest
from ..protocol.claim import claim, claim_next
from ..protocol.job_run import begin_run, end_run, forget_run
from ..protocol.publish import Published, StagedClaim, publish_many
from ..protocol.release import fail_many
from ..protocol.renew import renew
from ..scripts.run_script import ELSEWHERE
from ..warehouse.listing import files_below


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    run_id: RunId
    claims: tuple[Claim, ...]


def begin(
    ledger: Ledger, jobid: str, dataid: str | None = None, *, count: int = 1, external_id: str | None = None
) -> Begun | None:
    """This chunk, or the next ones; None: nothing is ready, and no run has begun."""
    run_id = begin_run(ledger, jobid, external_id=external_id)
    taken: list[Claim] = []
    try:
        taken = claim_next(ledger, jobid, count, run_id) if dataid is None else [claim(ledger, jobid, dataid, run_id)]
    finally:
        if not taken:
            forget_run(ledger, run_id)
    return Begun(run_id=run_id, claims=tuple(taken)) if taken else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Extended:
    claims: tuple[Claim, ...]
    #: What the run claimed and holds no more.
    lost: tuple[Claim, ...]


def extend(ledger: Ledger, run_id: int) -> Extended:
    """The work goes on."""
    run = _open_run(ledger, run_id)
    found = _claims_of(ledger, run)
    if not found.held:
        raise ClaimLost(found.lost, "renew")
    return Extended(claims=tuple(renew(ledger, [one.claim for one in found.held])), lost=tuple(found.lost))


def end(
    ledger: Ledger, run_id: int, locations: Mapping[str, str] | None = None, *, row_count: int | None = None
) -> Published:
    """Publish all that the run holds. `locations`: where the new version of an output is, if it has a root.

    What does not fit its DataSet is an error, and the run goes on with that alone: end it again, or fail it.
    """
    run, places = _open_run(ledger, run_id), dict(locations or {})
    found = _claims_of(ledger, run)
    if not found.held and not found.published:
        end_run(ledger, run.run_id, failed=True)
        raise ClaimLost(found.lost, "end")
    if strangers := sorted(set(places) - {output for one in found.held for output in one.claim.outputs}):
        raise InvalidInput(f"run {run_id} does not make {strangers[0]}; leave its location out")
    made = [
        StagedClaim(
            claim=one.claim,
            manifests={output: _manifest(one, output, places, row_count) for output in one.claim.outputs},
        )
        for one in found.held
    ]
    published = publish_many(ledger, made)
    if published.misfits:
        raise published.misfits[0].error
    published = replace(
        published, versions=(*found.published, *published.versions), lost=(*found.lost, *published.lost)
    )
    end_run(ledger, run.run_id, failed=bool(published.lost))
    return published


def outputs_of(ledger: Ledger, run_id: int) -> list[str]:
    """The DataSets that the run makes."""
    run = _open_run(ledger, run_id)
    with ledger.statement() as statement:
        return [row["datasetid"] for row in statement.rows("outputs_of", jobid=run.jobid)]


def give_up(ledger: Ledger, run_id: int, reason: str) -> list[Claim]:
    """All that the run holds has failed."""
    run = _open_run(ledger, run_id)
    found = _claims_of(ledger, run)
    claims = [one.claim for one in found.held]
    try:
        if not claims:
            raise ClaimLost(found.lost, "fail")
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
        raise InvalidInput(f"run {run_id} of {run.jobid} ended before; begin another one")
    return run


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claims:
    """All that a run has ever claimed."""

    held: list[_Held]
    #: By an end of the run that did not come to its own end.
    published: list[Publication]
    lost: list[Claim]


def _claims_of(ledger: Ledger, run: Run) -> _Claims:
    with ledger.transaction() as transaction:
        holds = _by_claim(transaction.rows("run_claims", run_id=run.run_id))
        begun = _by_claim(transaction.rows("run_begun", run_id=run.run_id))
        gone = [_claim(run, of_claim) for claim_id, of_claim in begun.items() if claim_id not in holds]
        published = ledger_claims.published_by(transaction, gone) if gone else []
    landed = {one.claim_id for one in published}
    return _Claims(
        held=[
            _Held(claim=_claim(run, of_claim), roots={DatasetId(row["output"]): row["location"] for row in of_claim})
            for of_claim in holds.values()
        ],
        published=published,
        lost=[one for one in gone if one.claim_id not in landed],
    )


def _by_claim(found: Sequence[Row]) -> dict[int, list[Row]]:
    by_claim: dict[int, list[Row]] = {}
    for row in found:
        by_claim.setdefault(row["claim_id"], []).append(row)
    return by_claim


def _claim(run: Run, of_claim: Sequence[Row]) -> Claim:
    """From the rows of its outputs, which share everything else."""
    row = of_claim[0]
    return Claim(
        claim_id=ClaimId(row["claim_id"]),
        jobid=run.jobid,
        dataid=DataId(row["dataid"]),
        outputs=tuple(sorted(DatasetId(one["output"]) for one in of_claim)),
        attempt=row["attempt"],
        lease=row["lease"],
        lease_until=row["lease_until"],
        run_id=run.run_id,
        inputs=rows.input_versions(row["inputs"]),
    )


def _manifest(held: _Held, output: DatasetId, places: Mapping[str, str], row_count: int | None) -> NewManifest:
    if (place := places.get(output)) is None:
        if held.roots[output] is not None:
            raise InvalidInput(f"{output} has the root {held.roots[output]}; say where the new version is, below it")
        return NewManifest(location=ELSEWHERE, row_count=row_count)
    if (files := files_below(place)) is None:
        raise InvalidManifest(
            f"there is no folder {place} for {output}/{held.claim.dataid}; write it, then end the run"
        )
    return NewManifest(location=place, files=files, row_count=row_count)
