"""What the sweep needs from the ledger: which versions may lose their files, and what became of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from ..model.errors import InvalidInput
from ..model.ids import ClaimId, DataId, DatasetId, ManifestId
from ..model.manifest import Manifest
from ..model.retention import Retention
from . import rows
from .database import Transaction
from .names import unknown_dataset

ClaimFate: TypeAlias = Literal["LIVE", "LANDED", "SWEPT", "NOT_LANDED", "UNKNOWN"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimFolder:
    """A folder below the root of a DataSet that carries the name of a claim."""

    dataid: DataId
    claim_id: ClaimId
    location: str


def root_of(transaction: Transaction, datasetid: DatasetId) -> str:
    dataset = transaction.rows("root_of", datasetid=datasetid)
    if not dataset:
        raise unknown_dataset(transaction, datasetid)
    if dataset[0]["location"] is None:
        raise InvalidInput(f"DataSet {datasetid} has no location, so there is nothing to sweep; declare its location")
    return str(dataset[0]["location"])


def other_roots(transaction: Transaction, datasetid: DatasetId) -> frozenset[str]:
    """The roots of other DataSets below the root of this one, relative to it: a ledger of 0.1.0 may have such."""
    return frozenset(row["below"] for row in transaction.rows("other_roots", datasetid=datasetid))


def folders_in_use(
    transaction: Transaction, folders: Sequence[str], dropping: Sequence[ManifestId] = ()
) -> dict[str, str]:
    """Of these folders, those that some version needs: each with such a version. `dropping` counts as swept."""
    rows = transaction.rows("folders_in_use", folders=list(folders), dropping=list(dropping))
    return {row["folder"]: f"{row['datasetid']}/{row['dataid']} version {row['version']}" for row in rows}


def expired_versions(transaction: Transaction, datasetid: DatasetId, retention: Retention) -> list[Manifest]:
    """The versions that retention does not keep."""
    return [rows.manifest(row) for row in transaction.rows("versions_to_drop", **_parameters(datasetid, retention))]


def mark_expired(transaction: Transaction, datasetid: DatasetId, retention: Retention, by: str) -> None:
    transaction.rows("drop_versions", by=by, **_parameters(datasetid, retention))


def marked_versions(transaction: Transaction, datasetid: DatasetId) -> list[Manifest]:
    """Marked by this sweep or an earlier one, and not yet removed."""
    return [rows.manifest(row) for row in transaction.rows("versions_being_dropped", datasetid=datasetid)]


def swept_versions(transaction: Transaction, manifest_ids: Sequence[ManifestId]) -> dict[ManifestId, datetime]:
    """Those whose files a sweep has removed or is removing, and since when."""
    swept = transaction.rows("swept_versions", manifest_ids=list(manifest_ids))
    return {ManifestId(row["manifest_id"]): row["decided"] for row in swept}


def mark_removed(transaction: Transaction, manifest_ids: Sequence[ManifestId]) -> None:
    transaction.rows("versions_dropped", manifest_ids=list(manifest_ids))


def claim_fates(
    transaction: Transaction, datasetid: DatasetId, folders: Sequence[ClaimFolder], failed: timedelta
) -> list[tuple[ClaimFolder, ClaimFate, bool]]:
    """Each folder with the fate of its claim, and whether the claim ended longer ago than `failed`."""
    claims = transaction.rows(
        "claim_fates",
        datasetid=datasetid,
        dataids=[folder.dataid for folder in folders],
        claim_ids=[folder.claim_id for folder in folders],
        locations=[folder.location for folder in folders],
        failed=failed,
    )
    fates = {(row["dataid"], row["claim_id"]): (row["fate"], row["is_old"]) for row in claims}
    return [(folder, *fates[folder.dataid, folder.claim_id]) for folder in folders]


def _parameters(datasetid: DatasetId, retention: Retention) -> dict[str, object]:
    return {
        "datasetid": datasetid,
        "versions": retention.versions,
        "time": retention.time,
        "grace": retention.grace,
    }
