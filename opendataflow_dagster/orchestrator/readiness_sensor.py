"""The readiness sensor: finds chunks that can run, and starts few runs with many chunks each.

Chunks of queued or running runs and of backfills are left to them. The claim in the run decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from ..engine.connections import Ledger
from ..engine.dataset_graph import DatasetGraph, DatasetNode
from ..engine.readiness import blocked_chunks, runnable_chunks
from ..model.ids import DataId, JobId
from ..protocol.throttle import room
from .assets import job_of
from .assigned_chunks import READINESS_SENSOR, assigned_chunks
from .resources import LedgerResource
from .run_config import CHUNKS_TAG, RANGE_TAG, asset_key_of, labels, partition_tags, run_config
from .tick import tick

# A running run takes on new chunks. A chunk that has waited longer than this gets a run of its own.
_MOST_WAIT_SECONDS = 60.0


def readiness_sensor(
    graph: DatasetGraph, *, chunks_per_run: int = 2500, runs_per_job: int = 4, interval_seconds: int = 5
) -> dg.SensorDefinition:
    nodes = {job.jobid: node for node, job in graph.produced}

    @dg.sensor(
        name=READINESS_SENSOR,
        jobs=[job_of(node, job) for node, job in graph.produced],
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts runs for chunks that are free, whose inputs are READY, and that pass all five questions.",
    )
    def evaluate(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
        store, jobids = ledger.ledger, list(nodes)
        runnable = runnable_chunks(store, jobids, chunks_per_run * (runs_per_job + 1))
        if not runnable:
            return _nothing(store, jobids, [])
        assigned = assigned_chunks(context.instance)
        requests: list[dg.RunRequest] = []
        notes: list[str] = []
        for jobid, waited in runnable.items():
            node, running = nodes[jobid], assigned.runs.get(jobid, 0)
            free = [dataid for dataid in waited if not assigned.has(jobid, asset_key_of(node), dataid)]
            if not free:
                notes.append(f"{jobid}: {len(waited):,} runnable, already assigned to a run or a backfill")
            elif running >= runs_per_job:
                notes.append(f"{jobid}: {len(free):,} runnable, waiting for one of its {runs_per_job} runs to end")
            elif (
                running and len(free) <= chunks_per_run and max(waited[dataid] for dataid in free) < _MOST_WAIT_SECONDS
            ):
                notes.append(f"{jobid}: {len(free):,} runnable, left to a running run")
            elif blocked := _no_capacity(store, jobid):
                notes.append(f"{jobid}: {len(free):,} runnable, but {blocked}")
            else:
                chosen = free[: (runs_per_job - running) * chunks_per_run]
                if node.dataset.partitions is None:
                    # Dagster must know a dynamic partition before a run has it.
                    context.instance.add_dynamic_partitions(node.dataset.datasetid, chosen)
                requests += _requests(node, jobid, chosen, chunks_per_run)
        if not requests:
            return _nothing(store, jobids, notes)
        return tick(_summary(requests), run_requests=requests)

    return evaluate


def _requests(node: DatasetNode, jobid: JobId, dataids: Sequence[DataId], size: int) -> Iterable[dg.RunRequest]:
    """There is no run key, because it would keep a later RESUBMIT of the same chunk from running.

    The chunks are in the run configuration, because tags hold one partition or a range.
    """
    for begin in range(0, len(dataids), size):
        portion = dataids[begin : begin + size]
        yield dg.RunRequest(
            job_name=jobid,
            run_config=run_config(node, portion),
            tags={**partition_tags(portion), **labels(portion)},
        )


def _summary(requests: Sequence[dg.RunRequest]) -> str:
    """`raw: 29 chunks 2024-01-02..2024-01-30`, for each run."""
    return "; ".join(f"{request.job_name}: {_chunks(request.tags)}" for request in requests)


def _chunks(tags: Mapping[str, str]) -> str:
    return f"{tags[CHUNKS_TAG]} chunk{'' if tags[CHUNKS_TAG] == '1' else 's'} {tags[RANGE_TAG]}"


def _no_capacity(ledger: Ledger, jobid: JobId) -> str | None:
    limit = room(ledger, jobid)
    if limit.paused is not None:
        return f"the job is paused ({limit.paused})"
    if limit.free is not None and limit.free <= 0:
        return f"the job is at its concurrency limit ({limit.running} of {limit.concurrency} running)"
    return None


def _nothing(ledger: Ledger, jobids: Sequence[JobId], notes: Sequence[str]) -> dg.SensorResult:
    reasons = [*notes, *blocked_chunks(ledger, jobids)]
    return tick("; ".join(reasons) or "nothing can run: all is READY, or waits")
