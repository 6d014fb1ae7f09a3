"""What the ledger does for gate, claim, renew, publish and release: call a statement, map its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..model.claim import Claim
from ..model.ids import ClaimId, DataId, DatasetId, JobId, ManifestId, RunId
from ..model.manifest import Manifest, NewManifest
from ..model.verdict import Code, Verdict
from . import rows
from .database import Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A claim as the ledger grants it; whether its inputs have files that must be looked at first."""

    claim: Claim
    file_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Publication:
    """What became of one output of a claim: a version, or what is wrong with its manifest."""

    claim_id: ClaimId
    datasetid: DatasetId
    manifest_id: ManifestId | None
    version: int | None
    problem: Literal["OUTSIDE", "OTHER_SCHEMA"] | None = None
    root: str | None = None
    declared: str | None = None


class LostRace(Exception):
    """Somebody without a runnable row in common took the chunk between our look and our write."""


def ask(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> list[Verdict]:
    return [rows.verdict(jobid, row) for row in transaction.rows("gate", jobid=jobid, dataids=list(dataids))]


def record(transaction: Transaction, jobid: JobId, verdicts: Sequence[Verdict]) -> None:
    transaction.run("record_verdicts", jobid=jobid, **rows.verdict_parameters(verdicts))


def block(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId], code: Code) -> None:
    transaction.run("block", jobid=jobid, dataids=list(dataids), code=code)


def take_next(
    transaction: Transaction, jobid: JobId, count: int, run_id: RunId | None
) -> tuple[list[Taken], list[Verdict]]:
    found = transaction.rows("claim_next", jobid=jobid, count=count, run_id=run_id)
    return _taken(jobid, run_id, found)


def take_named(
    transaction: Transaction, jobid: JobId, dataids: Sequence[DataId], run_id: RunId | None
) -> tuple[list[Taken], list[Verdict]]:
    transaction.rows("lock_runnable", jobid=jobid, dataids=list(dataids))
    found = transaction.rows("claim_named", jobid=jobid, dataids=list(dataids), run_id=run_id)
    return _taken(jobid, run_id, found)


def _taken(jobid: JobId, run_id: RunId | None, found: list[Row]) -> tuple[list[Taken], list[Verdict]]:
    taken: list[Taken] = []
    refused: list[Verdict] = []
    for row in found:
        if row["claim_id"] is None:
            refused.append(rows.verdict(jobid, row))
        elif len(row["outputs"] or ()) != row["output_count"]:
            raise LostRace
        else:
            taken.append(Taken(claim=rows.claim(jobid, run_id, row), file_count=row["file_count"]))
    return taken, refused


def renew(transaction: Transaction, claims: Sequence[Claim]) -> dict[ClaimId, datetime]:
    leases = [one.lease for one in claims for _ in one.outputs]
    found = transaction.rows("renew", **rows.fences(claims), leases=leases)
    return {ClaimId(row["claim_id"]): row["lease_until"] for row in found}


def publish(
    transaction: Transaction, made: Sequence[tuple[Claim, dict[DatasetId, NewManifest]]]
) -> list[Publication]:
    claims = [claim for claim, _ in made]
    manifests = rows.manifest_parameters(manifests[output] for claim, manifests in made for output in claim.outputs)
    found = transaction.rows("publish", **rows.fences(claims), manifests=manifests)
    return [Publication(**row) for row in found]


def published_by(transaction: Transaction, claims: Sequence[Claim]) -> list[Publication]:
    fences = rows.fences(claims)
    found = transaction.rows(
        "published_by", datasetids=fences["datasetids"], dataids=fences["dataids"], claim_ids=fences["claim_ids"]
    )
    return [Publication(**row) for row in found]


def release(
    transaction: Transaction, claims: Sequence[Claim], outcome: Literal["failed", "abandoned"], reasons: Sequence[str]
) -> set[ClaimId]:
    texts = [reason for one, reason in zip(claims, reasons, strict=True) for _ in one.outputs]
    found = transaction.rows(f"release_{outcome}", **rows.fences(claims), reasons=texts)
    return {ClaimId(row["claim_id"]) for row in found}


def manifests(transaction: Transaction, manifest_ids: Iterable[ManifestId]) -> list[Manifest]:
    return [rows.manifest(row) for row in transaction.rows("manifests", manifest_ids=list(manifest_ids))]
