"""Which chunks somebody in Dagster has already: a run of the sensor that is queued or works, or a backfill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import dagster as dg
from dagster._core.execution.asset_backfill import AssetBackfillData
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from .run_config import dataids_in

#: The sensor whose runs have their chunks in their configuration.
SENSOR: Final = "readiness"
_RUNS = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
_BACKFILLS = (BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING)


@dataclass(frozen=True, kw_only=True)
class Active:
    #: How many runs of the sensor each Job has, and their chunks.
    runs: Mapping[str, int]
    dataids: Mapping[str, frozenset[str]]
    backfills: Mapping[str, AssetBackfillData]

    def has(self, jobid: str, asset_key: dg.AssetKey, dataid: str) -> bool:
        """What a backfill has not made yet is its own, also what it comes to later; what failed in it is not."""
        return dataid in self.dataids.get(jobid, ()) or bool(self.backfills_with(asset_key, dataid))

    def backfills_with(self, asset_key: dg.AssetKey, dataid: str) -> set[str]:
        return {name for name, one in self.backfills.items() if _will_make(one, asset_key, dataid)}


def active_of(instance: dg.DagsterInstance, *, without: str | None = None) -> Active:
    """`without`: a run that asks for itself."""
    runs: dict[str, int] = {}
    dataids: dict[str, set[str]] = {}
    for run in instance.get_runs(dg.RunsFilter(statuses=list(_RUNS), tags={"dagster/sensor_name": SENSOR})):
        if run.run_id == without:
            continue
        runs[run.job_name] = runs.get(run.job_name, 0) + 1
        dataids.setdefault(run.job_name, set()).update(dataids_in(run.run_config))
    backfills = instance.get_backfills(filters=BulkActionsFilter(statuses=list(_BACKFILLS)))
    return Active(
        runs=runs,
        dataids={name: frozenset(ids) for name, ids in dataids.items()},
        backfills={
            one.backfill_id: one.asset_backfill_data for one in backfills if one.asset_backfill_data is not None
        },
    )


def _will_make(backfill: AssetBackfillData, asset_key: dg.AssetKey, dataid: str) -> bool:
    def within(subset: Mapping[dg.AssetKey, dg.PartitionsSubset]) -> bool:
        return asset_key in subset and dataid in subset[asset_key]

    return (
        within(backfill.target_subset.partitions_subsets_by_asset_key)
        and not within(backfill.materialized_subset.partitions_subsets_by_asset_key)
        and not within(backfill.failed_and_downstream_subset.partitions_subsets_by_asset_key)
    )
