"""The IO manager: reads inputs through manifests, and stages, validates and publishes outputs, chunk by chunk.

A DataSet's asset returns its Work: which chunks, and how each is made. `handle_output` does it. Inputs of DataSets are
read there too, through the versions that each claim has pinned; `load_input` serves assets of plain Dagster.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.execution.context.system import StepExecutionContext

from ..ledger.chunks import find, ready_versions
from ..ledger.database import Ledger
from ..ledger.reports import open_runs, what_can_run
from ..model.errors import InvalidInput, InvalidManifest
from ..model.ids import ChunkKey, DataId, DatasetId, RunId, dataset_id
from ..model.job import Job
from ..model.manifest import Manifest
from ..model.status import Status
from ..model.verdict import Code
from ..protocol.request import Requested, request
from ..protocol.run import begin_run, end_run
from ..protocol.throttle import room
from ..warehouse import parquet
from . import metadata
from .active import SENSOR, active_of
from .catalogue import Catalogue, Entry
from .endings import end_badly
from .events import EventWriter, Materialized, Origin, write_planned
from .produce import Made, Outcome, Producer, patiently
from .resources import LedgerResource, SparkResource
from .table import follow
from .trigger import Trigger, trigger_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# How long a request waits for a chunk that somebody else is making just now.
_WAIT_SECONDS = 120.0
_PAUSE_SECONDS = 1.0
_SHOWN = 10
# A run takes along what becomes runnable meanwhile, until it has had so many chunks.
_TAKEN_ALONG = 2500


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the asset of a DataSet returns."""

    entry: Entry
    job: Job
    catalogue: Catalogue
    dataids: tuple[DataId, ...]
    #: Those of them that Dagster itself has planned: others come from the run's configuration.
    planned: frozenset[str]


class DatasetIOManager(dg.ConfigurableIOManager):
    ledger: LedgerResource
    spark: SparkResource
    #: How many chunks a run makes at a time; 0: as many as this machine has cores.
    chunks_at_once: int = 0

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        if not isinstance(obj, Work):
            raise InvalidInput(
                f"this IO manager publishes chunks of DataSets, and {type(obj).__name__} is none; "
                f"declare the asset with @dataset, or give it another IO manager"
            )
        step, ledger = context.step_context, self.ledger.ledger
        origin = origin_of(step)
        unplanned = [one for one in obj.dataids if one not in obj.planned]
        write_planned(step.instance, obj.entry.asset_key, unplanned, origin)
        with (
            _run_of(ledger, obj.job, step) as run_id,
            EventWriter(step.instance, ledger, origin, context.log) as events,
        ):
            outcome, satisfied = self._work(obj, ledger, run_id, events, step)
            figures = {"made": outcome.made, "satisfied": satisfied, "not_made": len(outcome.reasons())}
            context.add_output_metadata(figures)
            if not outcome.ok:
                raise _failure(obj, outcome)

    def load_input(self, context: dg.InputContext) -> DataFrame:
        """The current versions of the chunks that an asset of plain Dagster asks for, as one DataFrame."""
        datasetid = dataset_id(context.asset_key.path[-1])
        if not context.has_asset_partitions:
            raise InvalidInput(
                f"which chunks of {datasetid}? Partition the asset, or give its input a partition mapping"
            )
        dataids = [DataId(one) for one in context.asset_partition_keys]
        return parquet.read(self.spark.spark_session, current(self.ledger.ledger, datasetid, dataids))

    def _work(
        self, work: Work, ledger: Ledger, run_id: RunId, events: EventWriter, step: StepExecutionContext
    ) -> tuple[Outcome, int]:
        trigger = trigger_of(step.instance, step.dagster_run)
        partitions = work.entry.dataset.partitions
        known = [one for one in work.dataids if partitions is None or partitions.has(one)]

        def asked_for(dataids: Sequence[DataId], requested: datetime | None) -> Requested:
            return patiently(
                lambda: request(
                    ledger,
                    work.job,
                    dataids,
                    by=trigger.by,
                    requested=requested,
                    run_id=run_id,
                    reason="asked for in Dagster",
                ),
                step.log,
            )

        satisfied = dict(asked_for(known, trigger.requested).satisfied)
        made: list[DataId] = []
        producer = self._producer(work, ledger, run_id, events, step, made)
        outcome = producer.run([one for one in work.dataids if one not in satisfied])
        seen = set(work.dataids)
        while more := _came_meanwhile(work, ledger, step, trigger, seen):
            write_planned(step.instance, work.entry.asset_key, more, origin_of(step))
            seen.update(more)
            asked_for(more, None)
            outcome.add(producer.run(more))
        satisfied |= _wait_for_others(work, ledger, outcome)
        for dataid, manifest in satisfied.items():
            events.add(_satisfied(work.entry, dataid, manifest))
        if work.entry.declaration.table and made:
            follow(ledger, self.spark.spark_session, work.entry.declaration, made, step.log)
        return outcome, len(satisfied)

    def _producer(
        self,
        work: Work,
        ledger: Ledger,
        run_id: RunId,
        events: EventWriter,
        step: StepExecutionContext,
        dataids: list[DataId],
    ) -> Producer:
        """`dataids` gets each chunk that it has published."""
        declared = work.entry.declaration

        def published(made: Made) -> None:
            dataids.append(made.claim.dataid)
            events.add(
                Materialized(
                    asset_key=work.entry.asset_key,
                    dataid=made.claim.dataid,
                    metadata=metadata.of_made(made),
                    manifest_id=made.publication.manifest_id,
                )
            )

        return Producer(
            ledger=ledger,
            engine=lambda: self.spark.spark_session,
            declaration=declared,
            root=work.entry.dataset.location or "",
            foreign=work.catalogue.foreign,
            schemas=work.catalogue.schemas,
            run_id=run_id,
            at_once=self.chunks_at_once or os.cpu_count() or 1,
            log=step.log,
            published=published,
        )


def current(ledger: Ledger, datasetid: DatasetId, dataids: Sequence[DataId]) -> list[Manifest]:
    """The versions that readers get; all of them, or an error that names what is missing."""
    keys = [ChunkKey(datasetid=datasetid, dataid=one) for one in dataids]
    with ledger.statement() as statement:
        found = ready_versions(statement, keys)
    if missing := [str(one) for one in keys if one not in found]:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise InvalidInput(f"not READY: {', '.join(missing[:_SHOWN])}{more}; make them first")
    if without := [str(one) for one, manifest in found.items() if manifest is None]:
        raise InvalidManifest(f"made READY without a manifest: {', '.join(without[:_SHOWN])}; announce them with one")
    return [manifest for key in keys if (manifest := found[key]) is not None]


def origin_of(step: StepExecutionContext) -> Origin:
    return Origin(run_id=step.run_id, job_name=step.job_name, step_key=step.step.key)


def _came_meanwhile(
    work: Work, ledger: Ledger, step: StepExecutionContext, trigger: Trigger, seen: set[DataId]
) -> list[DataId]:
    """What became runnable while we worked, and is ours too: a run that is there is cheaper than one that must start.

    A run of the sensor takes along what nobody has; one of a backfill, what the same backfill will come to.
    """
    wanted = {trigger.backfill} if trigger.backfill else set()
    if trigger.sensor != SENSOR and not wanted:
        return []
    if len(seen) >= _TAKEN_ALONG or room(ledger, work.job.jobid).free == 0:
        return []
    with ledger.statement() as statement:
        can_run = what_can_run(statement, [work.job.jobid], _TAKEN_ALONG).get(work.job.jobid, {})
        if not (new := [one for one in can_run if one not in seen]):
            return []
        active = active_of(step.instance, open_runs(statement, [work.job.jobid]), without=step.run_id)
    taken = active.dataids.get(work.job.jobid, ())
    return [one for one in new if one not in taken and active.backfills_with(work.entry.asset_key, one) == wanted]


@contextmanager
def _run_of(ledger: Ledger, job: Job, step: StepExecutionContext) -> Iterator[RunId]:
    run_id = patiently(lambda: begin_run(ledger, job.jobid, runner="dagster", external_id=step.run_id), step.log)
    try:
        yield run_id
    except BaseException:
        # What ended the run is what must be told; the sensors close it where the ledger or Dagster's store is gone.
        with suppress(Exception):
            end_badly(ledger, run_id, step.instance.get_run_by_id(step.run_id) or step.dagster_run)
        raise
    patiently(lambda: end_run(ledger, run_id), step.log)


def _wait_for_others(work: Work, ledger: Ledger, outcome: Outcome) -> dict[DataId, Manifest | None]:
    """What somebody else was making when we asked is waited for: our request is satisfied when he has made it."""
    satisfied: dict[DataId, Manifest | None] = {}
    until = monotonic() + _WAIT_SECONDS
    while busy := [one for one, verdict in outcome.refused.items() if verdict.code == Code.LOCKED]:
        keys = [ChunkKey(datasetid=work.entry.dataset.datasetid, dataid=one) for one in busy]
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


def _satisfied(entry: Entry, dataid: DataId, manifest: Manifest | None) -> Materialized:
    note = "it was READY already when its turn came; nothing ran again"
    return Materialized(
        asset_key=entry.asset_key,
        dataid=dataid,
        metadata=metadata.of_manifest(manifest, note) if manifest else metadata.of_foreign(note),
        manifest_id=manifest.manifest_id if manifest else None,
    )


def _failure(work: Work, outcome: Outcome) -> dg.Failure:
    reasons = outcome.reasons()
    shown = "; ".join(f"{one}: {reason}" for one, reason in list(reasons.items())[:_SHOWN])
    more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    table = "".join(f"| {one} | {' '.join(reason.split())[:300]} |\n" for one, reason in list(reasons.items())[:1000])
    return dg.Failure(
        description=f"{len(reasons)} of {len(work.dataids)} chunks of {work.entry.dataset.datasetid} were not made: "
        f"{shown}{more}",
        metadata={"not_made": dg.MetadataValue.md(f"| chunk | why |\n|---|---|\n{table}")},
        allow_retries=False,
    )
