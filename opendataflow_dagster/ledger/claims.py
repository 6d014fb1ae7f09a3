"""The statements of gate, claim, renew, publish and release."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ..model.claim import Claim
from ..model.ids import ClaimId, DataId, DatasetId, JobId, ManifestId, RunId
from ..model.manifest import Manifest, NewManifest
from ..model.verdict import InputVersion, Verdict
from . import rows
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A chunk with five yes from the ledger."""

    dataid: DataId
    #: Changes with every fact about the chunk; a claim holds only on the same state.
    state: str
    inputs: tuple[InputVersion, ...]
    #: The versions of its inputs, whose files are still to be looked at.
    manifests: tuple[Manifest, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    claims: list[Claim]
    #: The answers for chunks that were asked for by name and not taken; without a no: not planned yet, or changed.
    refused: list[Verdict]
    #: How many more chunks of the Job may run now; None: no limit.
    free: int | None
    is_paused: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Publication:
    """The new version of one output of a claim."""

    claim_id: ClaimId
    datasetid: DatasetId
    manifest_id: ManifestId
    version: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A manifest of a claim that does not fit its DataSet."""

    claim_id: ClaimId
    datasetid: DatasetId
    problem: Literal["OUTSIDE", "OTHER_SCHEMA", "SAME_PLACE", "UNREADABLE"]
    root: str | None
    declared: str | None


def ask(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> list[Verdict]:
    """What the ledger alone can answer."""
    answered = transaction.rows("ask", jobid=jobid, dataids=list(dataids)) if dataids else []
    return [rows.verdict(jobid, row) for row in answered]


def answers(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> list[Verdict]:
    """The same, with the operators' limits of the Job."""
    answered = transaction.rows("answers", jobid=jobid, dataids=list(dataids)) if dataids else []
    return [rows.verdict(jobid, row) for row in answered]


def record(transaction: Transaction, jobid: JobId, verdicts: Sequence[Verdict], *, block: bool = False) -> None:
    """The ledger's own answers, with what these verdicts say about files, which it cannot see.

    `block`: the chunks are not offered to claims until heal asks again.
    """
    if verdicts:
        transaction.rows("record_verdicts", jobid=jobid, **rows.misplaced(verdicts), block=block)


def evaluate(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> None:
    """Ask the ledger's questions again, and keep the answers."""
    if dataids:
        transaction.rows("evaluate", jobid=jobid, dataids=list(dataids))


def open_days(transaction: Transaction) -> bool:
    """Is there a new day of `today`?"""
    return bool(transaction.value("open_days"))


def runnable(transaction: Transaction, jobid: JobId, count: int) -> list[DataId]:
    """The next chunks that can run; nothing is locked."""
    return [DataId(row["dataid"]) for row in transaction.rows("runnable_chunks", jobid=jobid, count=count)]


def next_candidates(transaction: Transaction, jobid: JobId, count: int, skip: int) -> list[Candidate]:
    return _candidates(transaction.value("next_candidates", jobid=jobid, count=count, skip=skip))


def named_candidates(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> list[Candidate]:
    return _candidates(transaction.value("named_candidates", jobid=jobid, dataids=list(dataids)))


def _candidates(answer: str) -> list[Candidate]:
    parsed = json.loads(answer)
    manifests = {stored["manifest_id"]: rows.manifest(stored) for stored in parsed["manifests"]}
    return [
        Candidate(
            dataid=DataId(chunk["dataid"]),
            state=chunk["state"],
            inputs=rows.input_versions(chunk["inputs"]),
            manifests=tuple(manifests[pin["manifest_id"]] for pin in chunk["inputs"] if pin["manifest_id"] is not None),
        )
        for chunk in parsed["chunks"]
    ]


def claim(
    transaction: Transaction,
    jobid: JobId,
    candidates: Sequence[Candidate],
    *,
    count: int,
    run_id: RunId | None,
    named: Sequence[DataId] | None = None,
) -> Taken | None:
    """Take candidates whose answers still stand, at most `count`. None: there is no such Job.

    `named`: chunks that were asked for by name; those that are not taken come back with their answers.
    """
    by_dataid = {candidate.dataid: candidate for candidate in candidates}
    states: dict[DataId, str | None] = dict.fromkeys(named or ())
    states |= {candidate.dataid: candidate.state for candidate in candidates}
    # One JSON text, which the driver sends as it is; an array of them it would quote element by element.
    answer = transaction.value(
        "claim", jobid=jobid, candidates=json.dumps(states), count=count, run_id=run_id, named=named is not None
    )
    if answer is None:
        return None
    taken = json.loads(answer)
    read = [by_dataid[claim["dataid"]] for claim in taken["claims"]]
    return Taken(
        claims=rows.claims(jobid, run_id, taken, [(candidate.inputs, candidate.manifests) for candidate in read]),
        refused=[rows.verdict(jobid, row) for row in taken["refused"]],
        free=taken["free"],
        is_paused=taken["paused"],
    )


def force(transaction: Transaction, jobid: JobId, dataid: DataId, run_id: RunId | None, reason: str) -> Claim | None:
    """None: no output can be claimed."""
    answer = transaction.value("force", jobid=jobid, dataid=dataid, run_id=run_id, reason=reason)
    if answer is None:
        return None
    taken = json.loads(answer)
    inputs = rows.input_versions(taken["inputs"])
    read = manifests(transaction, [pin.manifest_id for pin in inputs if pin.manifest_id is not None])
    (claim,) = rows.claims(jobid, run_id, taken, [(inputs, tuple(read))])
    return claim


def renew(transaction: Transaction, claims: Sequence[Claim]) -> tuple[dict[ClaimId, datetime], set[ClaimId]]:
    """The leases of all claims that are held, and those that another transaction kept from being renewed."""
    leases = [claim.lease for claim in claims for _ in claim.outputs]
    renewed = transaction.rows("renew", **rows.fences(claims), leases=leases)
    leases_until = {ClaimId(row["claim_id"]): row["lease_until"] for row in renewed}
    return leases_until, {ClaimId(row["claim_id"]) for row in renewed if row["is_busy"]}


def publish(
    transaction: Transaction, staged: Sequence[tuple[Claim, Mapping[DatasetId, NewManifest]]]
) -> tuple[list[Publication], list[Refusal]]:
    """What was published and what was refused; a claim that was not held is in neither."""
    outputs = [
        {"datasetid": output, "jobid": claim.jobid, "dataid": claim.dataid, "claim_id": claim.claim_id}
        | manifests[output].to_json()
        for claim, manifests in staged
        for output in claim.outputs
    ]
    answer: dict[str, Any] = json.loads(transaction.value("publish", outputs=json.dumps(outputs)))
    publications = [Publication(**publication) for publication in answer["published"]]
    return publications, [Refusal(**refusal) for refusal in answer["refused"]]


def published_by(transaction: Transaction, claims: Sequence[Claim]) -> dict[Publication, Manifest]:
    """What these claims have published."""
    fences = rows.fences(claims)
    published = transaction.rows(
        "published_by", datasetids=fences["datasetids"], dataids=fences["dataids"], claim_ids=fences["claim_ids"]
    )
    names = ("claim_id", "datasetid", "manifest_id", "version")
    return {Publication(**{name: row[name] for name in names}): rows.manifest(row) for row in published}


def fail(
    transaction: Transaction, claims: Sequence[Claim], reasons: Sequence[str], tracebacks: Sequence[str | None]
) -> set[ClaimId]:
    texts = [
        (reason, trace) for claim, reason, trace in zip(claims, reasons, tracebacks, strict=True) for _ in claim.outputs
    ]
    released = transaction.rows(
        "release_failed",
        **rows.fences(claims),
        reasons=[reason for reason, _ in texts],
        tracebacks=[trace for _, trace in texts],
    )
    return {ClaimId(row["claim_id"]) for row in released}


def release(
    transaction: Transaction,
    claims: Sequence[Claim],
    outcome: Literal["abandoned", "unbegun"],
    reasons: Sequence[str],
) -> set[ClaimId]:
    texts = [reason for claim, reason in zip(claims, reasons, strict=True) for _ in claim.outputs]
    released = transaction.rows(f"release_{outcome}", **rows.fences(claims), reasons=texts)
    return {ClaimId(row["claim_id"]) for row in released}


def release_run(transaction: Transaction, run_id: RunId, reason: str) -> int:
    """Abandon all that a dead run holds; the number of chunks."""
    return len(transaction.rows("release_run", run_id=run_id, reason=reason))


def manifests(transaction: Transaction, manifest_ids: Iterable[ManifestId]) -> list[Manifest]:
    return [rows.manifest(row) for row in transaction.rows("manifests", manifest_ids=list(manifest_ids))]
