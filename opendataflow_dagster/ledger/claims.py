"""What the ledger does for gate, claim, renew, publish and release: call a statement, map its rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ..model.claim import Claim
from ..model.ids import ClaimId, DataId, DatasetId, JobId, ManifestId, RunId
from ..model.manifest import Manifest, NewManifest
from ..model.verdict import Verdict
from . import rows
from .database import Transaction

# What an integer of Postgres holds.
_MOST_AT_ONCE = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What the ledger grants."""

    claims: list[Claim]
    #: The claims hold only if every file of their inputs is in its place.
    have_files: bool


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
    problem: Literal["OUTSIDE", "OTHER_SCHEMA", "SAME_PLACE"]
    root: str | None
    declared: str | None


def ask(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> list[Verdict]:
    found = transaction.rows("gate", jobid=jobid, dataids=list(dataids)) if dataids else []
    return [rows.verdict(jobid, row) for row in found]


def record(transaction: Transaction, jobid: JobId, verdicts: Sequence[Verdict]) -> None:
    if verdicts:
        transaction.run("record_verdicts", jobid=jobid, **rows.verdict_parameters(verdicts))


def block(transaction: Transaction, jobid: JobId, verdicts: Sequence[Verdict]) -> None:
    """For a no that the ledger cannot know."""
    transaction.run(
        "block", jobid=jobid, dataids=[one.dataid for one in verdicts], codes=[one.code for one in verdicts]
    )


def settle(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> None:
    """Ask the ledger's questions again, and keep the answers."""
    if dataids:
        transaction.rows("settle", jobid=jobid, dataids=list(dataids))


def give_way(transaction: Transaction) -> None:
    """Do not wait long for what someone else holds: begin anew instead, before Postgres sees a deadlock."""
    transaction.rows("give_way")


def take_next(transaction: Transaction, jobid: JobId, count: int, run_id: RunId | None, *, with_files: bool) -> Taken:
    """The next chunks. Where there are files to look at, InputsHaveFiles unless it is said that they will be."""
    most = min(count, _MOST_AT_ONCE)
    taken = transaction.value("claim_next", jobid=jobid, count=most, run_id=run_id, with_files=with_files)
    return _taken(jobid, run_id, taken)


def runnable(transaction: Transaction, jobid: JobId, count: int) -> list[DataId]:
    """The next chunks that can run; nothing is locked."""
    return [DataId(row["dataid"]) for row in transaction.rows("runnable_chunks", jobid=jobid, count=count)]


def take_named(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId], run_id: RunId | None) -> Taken:
    """Those of these chunks that are runnable with five yes."""
    transaction.rows("lock_runnable", jobid=jobid, dataids=list(dataids))
    return _taken(jobid, run_id, transaction.value("claim_named", jobid=jobid, dataids=list(dataids), run_id=run_id))


def _taken(jobid: JobId, run_id: RunId | None, said: str | None) -> Taken:
    if said is None:
        return Taken(claims=[], have_files=False)
    taken: dict[str, Any] = json.loads(said)
    return Taken(claims=rows.claims(jobid, run_id, taken), have_files=taken["have_files"])


def renew(transaction: Transaction, claims: Sequence[Claim]) -> dict[ClaimId, datetime]:
    leases = [one.lease for one in claims for _ in one.outputs]
    found = transaction.rows("renew", **rows.fences(claims), leases=leases)
    return {ClaimId(row["claim_id"]): row["lease_until"] for row in found}


def publish(
    transaction: Transaction, made: Sequence[tuple[Claim, Mapping[DatasetId, NewManifest]]]
) -> tuple[list[Publication], list[Refusal]]:
    """What was published and what was refused; a claim that was not held is in neither."""
    outputs = [
        {"datasetid": output, "jobid": claim.jobid, "dataid": claim.dataid, "claim_id": claim.claim_id}
        | manifests[output].to_json()
        for claim, manifests in made
        for output in claim.outputs
    ]
    said = json.loads(transaction.value("publish", outputs=json.dumps(outputs)))
    versions = zip(said["claim_ids"], said["datasetids"], said["manifest_ids"], said["versions"], strict=True)
    publications = [
        Publication(claim_id=claim_id, datasetid=datasetid, manifest_id=manifest_id, version=version)
        for claim_id, datasetid, manifest_id, version in versions
    ]
    return publications, [Refusal(**one) for one in said["refused"]]


def published_by(transaction: Transaction, claims: Sequence[Claim]) -> list[Publication]:
    fences = rows.fences(claims)
    found = transaction.rows(
        "published_by", datasetids=fences["datasetids"], dataids=fences["dataids"], claim_ids=fences["claim_ids"]
    )
    return [Publication(**row) for row in found]


def release(
    transaction: Transaction,
    claims: Sequence[Claim],
    outcome: Literal["failed", "abandoned", "unbegun"],
    reasons: Sequence[str],
) -> set[ClaimId]:
    texts = [reason for one, reason in zip(claims, reasons, strict=True) for _ in one.outputs]
    found = transaction.rows(f"release_{outcome}", **rows.fences(claims), reasons=texts)
    return {ClaimId(row["claim_id"]) for row in found}


def manifests(transaction: Transaction, manifest_ids: Iterable[ManifestId]) -> list[Manifest]:
    return [rows.manifest(row) for row in transaction.rows("manifests", manifest_ids=list(manifest_ids))]
