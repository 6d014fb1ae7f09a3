"""The versions of a chunk, the inputs they were made from, and the chunks that read them."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.ids import ChunkKey, DataId, DatasetId, JobId, ManifestId
from ..model.manifest import Manifest
from . import rows
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class NewerInput:
    """A version was made from `used`, which `current` has superseded. None: a foreign client made it."""

    datasetid: DatasetId
    dataid: DataId
    used: int | None
    current: int | None


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
