"""What happens while a run works: chunks become runnable, and others make what was asked of it."""

from __future__ import annotations

import threading
from time import monotonic

from dagster._core.execution.context.system import StepExecutionContext

from ..engine.dataset_graph import Entry
from ..engine.run_result import Outcome
from ..ledger.chunks import find, ready_versions
from ..ledger.database import Ledger
from ..ledger.reports import what_can_run
from ..model.ids import ChunkKey, DataId, DatasetId
from ..model.job import Job
from ..model.manifest import Manifest
from ..model.status import Status
from ..model.verdict import Code
from ..protocol.throttle import room
from .assigned_chunks import SENSOR, active_of
from .trigger import Trigger

# How long a request waits for a chunk that somebody else is making just now.
_WAIT_SECONDS = 120.0
_PAUSE_SECONDS = 1.0
# A run takes along what becomes runnable meanwhile, until it has had so many chunks.
_TAKEN_ALONG = 2500


def came_meanwhile(
    entry: Entry, job: Job, ledger: Ledger, step: StepExecutionContext, trigger: Trigger, seen: set[DataId]
) -> list[DataId]:
    """What became runnable while we worked, and is ours too: a run that is there is cheaper than one that must start.

    A run of the sensor takes along what nobody has; one of a backfill, what the same backfill will come to.
    """
    wanted = {trigger.backfill} if trigger.backfill else set()
    if trigger.sensor != SENSOR and not wanted:
        return []
    if len(seen) >= _TAKEN_ALONG or room(ledger, job.jobid).free == 0:
        return []
    with ledger.statement() as statement:
        can_run = what_can_run(statement, [job.jobid], _TAKEN_ALONG).get(job.jobid, {})
    if not (new := [one for one in can_run if one not in seen]):
        return []
    active = active_of(step.instance, without=step.run_id)
    taken = active.dataids.get(job.jobid, ())
    return [one for one in new if one not in taken and active.backfills_with(entry.asset_key, one) == wanted]


def wait_for_others(ledger: Ledger, datasetid: DatasetId, outcome: Outcome) -> dict[DataId, Manifest | None]:
    """What somebody else was making when we asked is waited for: our request is satisfied when he has made it."""
    satisfied: dict[DataId, Manifest | None] = {}
    until = monotonic() + _WAIT_SECONDS
    while busy := [one for one, verdict in outcome.refused.items() if verdict.code == Code.LOCKED]:
        keys = [ChunkKey(datasetid=datasetid, dataid=one) for one in busy]
        with ledger.statement() as statement:
            ready = ready_versions(statement, keys)
            running = {one.dataid for one in find(statement, keys) if one.status == Status.RUNNING}
        for key, manifest in ready.items():
            del outcome.refused[key.dataid]
            satisfied[key.dataid] = manifest
        if not running or monotonic() > until:
            break
        threading.Event().wait(_PAUSE_SECONDS)
    return satisfied
