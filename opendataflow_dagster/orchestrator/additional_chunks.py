"""Chunks that become runnable while a run works: the run makes them too, which is cheaper than starting another run."""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg

from ..engine.connections import Ledger
from ..engine.readiness import runnable_chunks
from ..model.ids import DataId, JobId
from .assigned_chunks import READINESS_SENSOR, assigned_chunks
from .trigger import Trigger

#: A run takes on more chunks until it has had this many.
_MOST_CHUNKS = 2500


def additional_chunks(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    jobid: JobId,
    asset_key: dg.AssetKey,
    run_id: str,
    trigger: Trigger,
    seen: Collection[DataId],
) -> list[DataId]:
    """A run of the sensor takes on chunks that are assigned to no one; a run of a backfill, chunks of that backfill."""
    backfills = {trigger.backfill} if trigger.backfill else set()
    if (trigger.sensor != READINESS_SENSOR and not backfills) or len(seen) >= _MOST_CHUNKS:
        return []
    runnable = runnable_chunks(ledger, [jobid], _MOST_CHUNKS).get(jobid, {})
    if not (new := [dataid for dataid in runnable if dataid not in seen]):
        return []
    assigned = assigned_chunks(instance, except_run=run_id)
    taken = assigned.dataids.get(jobid, ())
    return [dataid for dataid in new if dataid not in taken and assigned.backfills_with(asset_key, dataid) == backfills]
