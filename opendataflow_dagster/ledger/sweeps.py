"""What the ledger knows for the sweep: which versions may lose their files, and what became of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from ..model.errors import InvalidInput, UnknownName
from ..model.ids import ClaimId, DataId, DatasetId, ManifestId
from ..model.manifest import Manifest
from ..model.retention import Retention
from . import rows
from .database import Transaction

Outcome: TypeAlias = Literal["LIVE", "LANDED", "SWEPT", "NOT_LANDED", "UNKNOWN"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimFolder:
    """A folder that was found below the root of a DataSet, named by a claim."""

    dataid: DataId
    claim_id: ClaimId
    location: str


def root_of(transaction: Transaction, datasetid: DatasetId) -> str:
    found = transaction.rows("root_of", datasetid=datasetid)
    if not found:
        raise UnknownName(f"DataSet {datasetid} is not registered; register it, or correct its name")
    if found[0]["location"] is None:
        raise InvalidInput(
            f"DataSet {datasetid} has no root of ours, so there is nothing to sweep; declare its location"
        )
    return str(found[0]["location"])


def to_drop(transaction: Transaction, datasetid: DatasetId, retention: Retention) -> list[Manifest]:
    return [rows.manifest(row) for row in transaction.rows("versions_to_drop", **_parameters(datasetid, retention))]


def decide(transaction: Transaction, datasetid: DatasetId, retention: Retention, by: str) -> None:
    transaction.rows("drop_versions", by=by, **_parameters(datasetid, retention))


def decided(transaction: Transaction, datasetid: DatasetId) -> list[Manifest]:
    return [rows.manifest(row) for row in transaction.rows("versions_being_dropped", datasetid=datasetid)]


def done(transaction: Transaction, manifest_ids: Sequence[ManifestId]) -> None:
    transaction.run("versions_dropped", manifest_ids=list(manifest_ids))


def outcomes(
    transaction: Transaction, datasetid: DatasetId, folders: Sequence[ClaimFolder], failed: timedelta
) -> list[tuple[ClaimFolder, Outcome, bool]]:
    """Each folder with what became of its claim, and whether that is long ago."""
    found = transaction.rows(
        "outcomes_of_claims",
        datasetid=datasetid,
        dataids=[one.dataid for one in folders],
        claim_ids=[one.claim_id for one in folders],
        locations=[one.location for one in folders],
        failed=failed,
    )
    by_name = {(row["dataid"], row["claim_id"]): (row["outcome"], row["is_old"]) for row in found}
    return [(one, *by_name[one.dataid, one.claim_id]) for one in folders]


def _parameters(datasetid: DatasetId, retention: Retention) -> dict[str, object]:
    return {
        "datasetid": datasetid,
        "versions": retention.versions,
        "time": retention.time,
        "grace": retention.grace,
    }
