"""The readiness sensor: asks the ledger what can run, and starts few runs with many chunks each.

Its answer is advice; the claim in the run is the law. What a queued or working run or a backfill has is left to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from ..engine.dataset_graph import Catalogue, Entry
from ..ledger.database import Ledger
from ..ledger.reports import Blocked, what_blocks, what_can_run
from ..model.ids import DataId, JobId
from ..protocol.throttle import room
from .assets import job_of
from .assigned_chunks import SENSOR, active_of
from .resources import LedgerResource
from .run_config import run_config

# A run of this sensor goes on with what becomes runnable while it works; what it does not come to so soon gets another.
_TAKEN_ALONG_SECONDS = 60.0


def readiness_sensor(
    found: Catalogue, *, chunks_per_run: int = 2500, runs_per_job: int = 4, interval_seconds: int = 5
) -> dg.SensorDefinition:
    entries = {job.jobid: one for one, job in found.made}

    @dg.sensor(
        name=SENSOR,
        jobs=[job_of(one, job) for one, job in found.made],
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts what can run: chunks that are free, whose inputs are READY, with five yes.",
    )
    def readiness(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
        store, jobids = ledger.ledger, list(entries)
        with store.statement() as statement:
            can_run = what_can_run(statement, jobids, chunks_per_run * (runs_per_job + 1))
        if not can_run:
            return dg.SensorResult(skip_reason=_why_nothing(store, jobids, {}))
        active = active_of(context.instance)
        requests: list[dg.RunRequest] = []
        notes: dict[JobId, str] = {}
        for jobid, dataids in can_run.items():
            left = [one for one in dataids if not active.has(jobid, entries[jobid].asset_key, one)]
            working = active.runs.get(jobid, 0)
            if not left:
                notes[jobid] = f"{len(dataids):,} chunks can run, and a run or a backfill has them already"
            elif working >= runs_per_job:
                notes[jobid] = f"{len(left):,} chunks can run, when one of its {runs_per_job} runs has ended"
            elif working and len(left) <= chunks_per_run and max(dataids[one] for one in left) < _TAKEN_ALONG_SECONDS:
                notes[jobid] = f"{len(left):,} chunks can run, and a run that works takes them along"
            elif note := _no_room(store, jobid):
                notes[jobid] = f"{len(left):,} chunks can run, but {note}"
            else:
                chosen = left[: (runs_per_job - working) * chunks_per_run]
                if entries[jobid].dataset.partitions is None:
                    # Dagster must know a dynamic partition before a run has it.
                    context.instance.add_dynamic_partitions(entries[jobid].dataset.datasetid, chosen)
                requests += _requests(entries[jobid], jobid, chosen, chunks_per_run)
        if not requests:
            return dg.SensorResult(skip_reason=_why_nothing(store, jobids, notes))
        return dg.SensorResult(run_requests=requests)

    return readiness


def _requests(entry: Entry, jobid: JobId, dataids: Sequence[DataId], size: int) -> Iterable[dg.RunRequest]:
    """Without a run key: one would keep a later RESUBMIT of the same chunk from ever running.

    The chunks are in the configuration, because tags know only one or a range. Dagster looks at the inputs of the one
    in its tag before a step, and refuses to without any; so the first has it.
    """
    for begin in range(0, len(dataids), size):
        portion = dataids[begin : begin + size]
        yield dg.RunRequest(
            job_name=jobid,
            run_config=run_config(entry, portion),
            tags={"dagster/partition": portion[0], "opendataflow/chunks": str(len(portion))},
        )


def _no_room(ledger: Ledger, jobid: JobId) -> str | None:
    there = room(ledger, jobid)
    if there.paused is not None:
        return f"the job is paused ({there.paused})"
    if there.free is not None and there.free <= 0:
        return f"{there.running} are RUNNING, and its concurrency is {there.concurrency}"
    return None


def _why_nothing(ledger: Ledger, jobids: Sequence[JobId], notes: Mapping[JobId, str]) -> str:
    with ledger.statement() as statement:
        blocked = what_blocks(statement, jobids)
    said = [f"{jobid}: {note}" for jobid, note in notes.items()] + [_say(one) for one in blocked]
    return "; ".join(said) or "nothing can run: every chunk is READY, or waits for an input that is not"


def _say(one: Blocked) -> str:
    many = f"{one.chunks:,}" if one.chunks < 1000 else "1,000 or more"
    reason = f" ({one.reason[:200]})" if one.reason else ""
    return f"{one.jobid}: {many} {one.word}, such as {one.example}{reason}"
