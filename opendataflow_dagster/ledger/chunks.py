"""The rows of chunks, their history and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from ..model.ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, ManifestId, RunId
from ..model.manifest import Manifest, NewManifest
from ..model.verdict import Verdict
from . import rows
from .database import Transaction
from .names import unknown_chunks


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """A producer's row. A foreign client may have written an unknown status, or none."""

    datasetid: DatasetId
    jobid: JobId
    dataid: DataId
    status: str | None
    modified: datetime
    claim_id: ClaimId | None
    lease_until: datetime | None
    attempt: int
    retries: int
    run_id: RunId | None
    manifest_id: ManifestId | None
    reason: str | None
    held_status: str | None
    version: int | None
    #: The code that made the current version; None: unknown.
    code_version: str | None
    #: READY, and made by other code than its DataSet's.
    is_other_code: bool
    #: READY, but made from a version of an input that is no longer current, or from a stale chunk.
    is_stale: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One change of one row by any client."""

    event_id: int
    at: datetime
    datasetid: DatasetId
    jobid: JobId
    dataid: DataId
    locktype: str
    old_status: str | None
    new_status: str | None
    claim_id: ClaimId | None
    attempt: int | None
    run_id: RunId | None
    manifest_id: ManifestId | None
    reason: str | None
    login: str
    actor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewerInput:
    """A version was made from `used`, which `current` has superseded. None: a foreign client made it."""

    datasetid: DatasetId
    dataid: DataId
    used: int | None
    current: int | None


def find(transaction: Transaction, keys: Sequence[ChunkKey]) -> list[Chunk]:
    return [Chunk(**row) for row in transaction.rows("chunk_rows", **rows.chunks(keys))]


def require(transaction: Transaction, keys: Sequence[ChunkKey]) -> None:
    known = {ChunkKey(datasetid=chunk.datasetid, dataid=chunk.dataid) for chunk in find(transaction, keys)}
    if unknown := sorted(set(keys) - known):
        raise unknown_chunks(transaction, unknown)


def downstream(transaction: Transaction, keys: Sequence[ChunkKey]) -> list[ChunkKey]:
    return [rows.key(row) for row in transaction.rows("downstream", **rows.chunks(keys))]


def history(transaction: Transaction, key: ChunkKey) -> list[Event]:
    return [Event(**row) for row in transaction.rows("history", datasetid=key.datasetid, dataid=key.dataid)]


def tracebacks(transaction: Transaction, claim_ids: Sequence[ClaimId]) -> dict[ClaimId, str]:
    """Of the claims that failed in the author's code."""
    return {
        ClaimId(row["claim_id"]): row["traceback"] for row in transaction.rows("tracebacks", claim_ids=list(claim_ids))
    }


def verdicts(transaction: Transaction, jobid: JobId, dataid: DataId) -> list[Verdict]:
    return [rows.verdict(jobid, row) for row in transaction.rows("verdicts", jobid=jobid, dataid=dataid)]


def current_manifest(transaction: Transaction, key: ChunkKey) -> Manifest | None:
    found = transaction.rows("current_manifest", datasetid=key.datasetid, dataid=key.dataid)
    return rows.manifest(found[0]) if found else None


def version(transaction: Transaction, key: ChunkKey, number: int) -> Manifest | None:
    found = transaction.rows("old_version", datasetid=key.datasetid, dataid=key.dataid, version=number)
    return rows.manifest(found[0]) if found else None


def rollback(transaction: Transaction, old: Manifest, reason: str) -> int | None:
    """The number of the new version. None: the chunk is not free to change."""
    published: int | None = transaction.value("rollback", manifest_id=old.manifest_id, reason=reason)
    return published


def producer_of(transaction: Transaction, datasetid: DatasetId) -> tuple[bool, JobId | None]:
    """Whether the DataSet is registered, and the Job that produces it."""
    found = transaction.rows("producer_of", datasetid=datasetid)
    return bool(found), JobId(found[0]["jobid"]) if found and found[0]["jobid"] else None


def announce(
    transaction: Transaction,
    datasetid: DatasetId,
    dataids: Sequence[DataId],
    manifests: Mapping[DataId, NewManifest],
) -> list[ChunkKey]:
    found = transaction.rows(
        "announce",
        datasetid=datasetid,
        dataids=list(dataids),
        manifests=[Jsonb(manifests[dataid].to_json()) if dataid in manifests else None for dataid in dataids],
    )
    return sorted(ChunkKey(datasetid=datasetid, dataid=DataId(row["dataid"])) for row in found)


def deleted(transaction: Transaction, jobid: JobId, dataid: DataId) -> list[ChunkKey]:
    return sorted(rows.key(row) for row in transaction.rows("delete_run", jobid=jobid, dataid=dataid))


def ready_versions(transaction: Transaction, keys: Sequence[ChunkKey]) -> dict[ChunkKey, Manifest | None]:
    """Those of the chunks that are READY, with their current version; None: a foreign client made it."""
    found: dict[ChunkKey, Manifest | None] = {}
    for row in transaction.rows("ready_versions", **rows.chunks(keys)):
        key = ChunkKey(datasetid=DatasetId(row["of_datasetid"]), dataid=DataId(row["of_dataid"]))
        found[key] = rows.manifest(row) if row["manifest_id"] is not None else None
    return found


def versions_of(transaction: Transaction, key: ChunkKey) -> list[Manifest]:
    """Oldest first."""
    versions = transaction.rows("versions", datasetid=key.datasetid, dataid=key.dataid)
    return [rows.manifest(row) for row in versions]


def newer_inputs(transaction: Transaction, manifest_id: ManifestId) -> list[NewerInput]:
    return [NewerInput(**row) for row in transaction.rows("newer_inputs", manifest_id=manifest_id)]


def consumers_of(transaction: Transaction, key: ChunkKey) -> list[tuple[JobId, DataId]]:
    """The chunks of Jobs that read this one."""
    consumers = transaction.rows("consumers_of", datasetid=key.datasetid, dataid=key.dataid)
    return [(JobId(row["jobid"]), DataId(row["dataid"])) for row in consumers]
