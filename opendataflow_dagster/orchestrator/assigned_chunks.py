"""Which chunks Dagster has already assigned: to a queued or running run of the readiness sensor, or to a backfill."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import dagster as dg

from ..engine.connections import Ledger
from ..engine.readiness import runnable_chunks
from ..model.ids import DataId, JobId
from .dagster_internals import AssetBackfillData, open_backfills, will_materialize
from .run_config import dataids_in
from .trigger import Trigger

#: A run takes on more chunks until it has had this many.
_MOST_CHUNKS: Final = 2500
#: The sensor whose runs name their chunks in the run configuration.
READINESS_SENSOR: Final = "readiness"
_OPEN_RUNS = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


@dataclass(frozen=True, kw_only=True)
class AssignedChunks:
    #: How many open runs of the sensor each Job has, and their chunks.
    runs: Mapping[str, int]
    dataids: Mapping[str, frozenset[str]]
    backfills: Mapping[str, AssetBackfillData]

    def has(self, jobid: str, asset_key: dg.AssetKey, dataid: str) -> bool:
        """A backfill owns every chunk that it has not made yet; a chunk that failed in it is free again."""
        return dataid in self.dataids.get(jobid, ()) or bool(self.backfills_with(asset_key, dataid))

    def backfills_with(self, asset_key: dg.AssetKey, dataid: str) -> set[str]:
        return {name for name, data in self.backfills.items() if will_materialize(data, asset_key, dataid)}


def assigned_chunks(instance: dg.DagsterInstance, *, except_run: str | None = None) -> AssignedChunks:
    runs: dict[str, int] = {}
    dataids: dict[str, set[str]] = {}
    open_runs = dg.RunsFilter(statuses=list(_OPEN_RUNS), tags={"dagster/sensor_name": READINESS_SENSOR})
    for run in instance.get_runs(open_runs):
        if run.run_id == except_run:
            continue
        runs[run.job_name] = runs.get(run.job_name, 0) + 1
        dataids.setdefault(run.job_name, set()).update(dataids_in(run.run_config))
    return AssignedChunks(
        runs=runs,
        dataids={jobid: frozenset(named) for jobid, named in dataids.items()},
        backfills=open_backfills(instance),
    )


def additional_chunks(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    jobid: JobId,
    asset_key: dg.AssetKey,
    run_id: str,
    trigger: Trigger,
    seen: Collection[DataId],
) -> list[DataId]:
    """Chunks that became runnable while a run works: the run makes them, too, which is cheaper than another run.

    A run of the sensor takes on chunks that are assigned to no one; a run of a backfill, chunks of that
    backfill.
    """
    backfills = {trigger.backfill} if trigger.backfill else set()
    if (trigger.sensor != READINESS_SENSOR and not backfills) or len(seen) >= _MOST_CHUNKS:
        return []
    runnable = runnable_chunks(ledger, [jobid], _MOST_CHUNKS).get(jobid, {})
    if not (new := [dataid for dataid in runnable if dataid not in seen]):
        return []
    assigned = assigned_chunks(instance, except_run=run_id)
    taken = assigned.dataids.get(jobid, ())
    return [dataid for dataid in new if dataid not in taken and assigned.backfills_with(asset_key, dataid) == backfills]
