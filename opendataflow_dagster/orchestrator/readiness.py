"""The readiness sensor: asks the ledger what can run, and starts few runs with many chunks each.

Its answer is advice; the claim in the run is the law. A chunk that a queued or working run already has is left to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from ..ledger.database import Ledger
from ..ledger.reports import Blocked, OpenRun, open_runs, what_blocks, what_can_run
from ..model.ids import DataId, JobId
from ..protocol.throttle import room
from .assets import dataids_in, job_of, run_config
from .catalogue import Catalogue, Entry
from .resources import LedgerResource

NAME = "readiness"
# A run that was started, holds no claim and is older than this is dead, whatever Dagster believes: it has nothing.
_GRACE = timedelta(minutes=2)
_ACTIVE = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


@dataclass(frozen=True, kw_only=True)
class Active:
    """The runs of this sensor that are queued or working, and the chunks they have, by Job."""

    runs: Mapping[str, int]
    dataids: Mapping[str, frozenset[str]]


def readiness_sensor(
    found: Catalogue, *, chunks_per_run: int = 2500, runs_per_job: int = 4, interval_seconds: int = 5
) -> dg.SensorDefinition:
    entries = {job.jobid: one for one, job in found.made}

    @dg.sensor(
        name=NAME,
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
        active = _active(context.instance, store, jobids)
        requests: list[dg.RunRequest] = []
        notes: dict[JobId, str] = {}
        for jobid, dataids in can_run.items():
            left = [one for one in dataids if one not in active.dataids.get(jobid, ())]
            places = runs_per_job - active.runs.get(jobid, 0)
            if not left:
                notes[jobid] = f"{len(dataids):,} chunks can run, and a run has them already"
            elif places <= 0:
                notes[jobid] = f"{len(left):,} chunks can run, when one of its {runs_per_job} runs has ended"
            elif note := _no_room(store, jobid):
                notes[jobid] = f"{len(left):,} chunks can run, but {note}"
            else:
                requests += _requests(entries[jobid], jobid, left[: places * chunks_per_run], chunks_per_run)
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


def _active(instance: dg.DagsterInstance, ledger: Ledger, jobids: Sequence[JobId]) -> Active:
    records = instance.get_run_records(dg.RunsFilter(statuses=list(_ACTIVE), tags={"dagster/sensor_name": NAME}))
    if not records:
        return Active(runs={}, dataids={})
    with ledger.statement() as statement:
        begun = {one.external_id: one for one in open_runs(statement, jobids)}
    runs: dict[str, int] = {}
    dataids: dict[str, set[str]] = {}
    for record in records:
        run = record.dagster_run
        if record.start_time is not None and _is_dead(record.start_time, begun.get(run.run_id)):
            continue
        runs[run.job_name] = runs.get(run.job_name, 0) + 1
        dataids.setdefault(run.job_name, set()).update(dataids_in(run.run_config))
    return Active(runs=runs, dataids={name: frozenset(ids) for name, ids in dataids.items()})


def _is_dead(started: float, begun: OpenRun | None) -> bool:
    young = datetime.now(UTC) - datetime.fromtimestamp(started, UTC) < _GRACE
    return not young and not (begun is not None and begun.works)


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
