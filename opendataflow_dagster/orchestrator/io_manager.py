"""The IO manager: reads inputs through manifests, and stages, validates and publishes outputs, chunk by chunk.

A DataSet's asset returns its Work: which chunks, and how each is made. `handle_output` does it. Inputs of DataSets are
read there too, through the versions that each claim has pinned; `load_input` serves assets of plain Dagster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.execution.context.system import StepExecutionContext

from ..engine.catalog_table import follow
from ..engine.dataset_graph import Catalogue, Entry
from ..engine.producer import Producer, patiently
from ..engine.run_result import Made, Outcome
from ..ledger import reports
from ..ledger.chunks import ready_versions
from ..ledger.database import Ledger
from ..model.errors import InvalidInput, InvalidManifest
from ..model.ids import ChunkKey, DataId, DatasetId, RunId, dataset_id
from ..model.job import Job
from ..model.manifest import Manifest
from ..protocol.job_run import begin_run, end_run
from ..protocol.request import Requested, request
from ..warehouse import parquet
from . import metadata
from .additional_chunks import came_meanwhile, wait_for_others
from .events import EventWriter, Materialized, Origin, write_planned
from .resources import LedgerResource, SparkResource
from .run_status_sensors import end_badly
from .silent_runs import heard_of
from .trigger import trigger_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 10


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
    #: How many chunks a run makes at a time; 0: two for each core. What one waits for (the driver, the file system, the
    #: ledger) is hidden by another; Spark itself never works on more than its cores.
    chunks_at_once: int = 0

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        if not isinstance(obj, Work):
            raise InvalidInput(
                f"this IO manager publishes chunks of DataSets, and {type(obj).__name__} is none; "
                f"declare the asset with @dataset, or give it another IO manager"
            )
        step, ledger = context.step_context, self.ledger.ledger
        origin = origin_of(step)
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
        unplanned = [one for one in work.dataids if one not in work.planned]
        write_planned(
            step.instance, work.entry.asset_key, [one for one in unplanned if one not in satisfied], origin_of(step)
        )
        made: list[DataId] = []
        producer = self._producer(work, ledger, run_id, events, step, made)
        outcome = producer.run([one for one in work.dataids if one not in satisfied])
        seen = set(work.dataids)
        while more := came_meanwhile(work.entry, work.job, ledger, step, trigger, seen):
            write_planned(step.instance, work.entry.asset_key, more, origin_of(step))
            seen.update(more)
            asked_for(more, None)
            outcome.add(producer.run(more))
        # Dagster takes a chunk that was planned, and then not told of, for one that failed or is missing.
        told = {one: manifest for one, manifest in satisfied.items() if one in work.planned}
        waited_for = wait_for_others(ledger, work.entry.dataset.datasetid, outcome)
        _tell_satisfied(work.entry, ledger, told | waited_for, events)
        satisfied |= waited_for
        if work.entry.declaration.table and made:
            follow(ledger, self.spark.spark_session, work.entry.declaration, made, step.log)
        outcome.asked = len(seen)
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
            at_once=self.chunks_at_once or 2 * (os.cpu_count() or 1),
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


@contextmanager
def _run_of(ledger: Ledger, job: Job, step: StepExecutionContext) -> Iterator[RunId]:
    run_id = patiently(lambda: begin_run(ledger, job.jobid, runner="dagster", external_id=step.run_id), step.log)
    try:
        with heard_of(ledger, run_id):
            yield run_id
    except BaseException:
        # What ended the run is what must be told; the sensors close it where the ledger or Dagster's store is gone.
        with suppress(Exception):
            end_badly(ledger, run_id, step.instance.get_run_by_id(step.run_id) or step.dagster_run)
        raise
    patiently(lambda: end_run(ledger, run_id), step.log)


def _tell_satisfied(
    entry: Entry, ledger: Ledger, satisfied: Mapping[DataId, Manifest | None], events: EventWriter
) -> None:
    note = "it was READY already when its turn came; nothing ran again"
    with ledger.statement() as statement:
        how = reports.how_made(statement, [one.manifest_id for one in satisfied.values() if one is not None])
    for dataid, manifest in satisfied.items():
        story = metadata.of_foreign(note)
        if manifest is not None:
            story = metadata.of_manifest(manifest, how.get(manifest.manifest_id), note)
        events.add(
            Materialized(
                asset_key=entry.asset_key,
                dataid=dataid,
                metadata=story,
                manifest_id=manifest.manifest_id if manifest else None,
            )
        )


def _failure(work: Work, outcome: Outcome) -> dg.Failure:
    reasons = outcome.reasons()
    shown = "; ".join(f"{one}: {reason}" for one, reason in list(reasons.items())[:_SHOWN])
    more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    table = "".join(f"| {one} | {' '.join(reason.split())[:300]} |\n" for one, reason in list(reasons.items())[:1000])
    return dg.Failure(
        description=f"{len(reasons)} of {outcome.asked} chunks of {work.entry.dataset.datasetid} were not made: "
        f"{shown}{more}",
        metadata={"not_made": dg.MetadataValue.md(f"| chunk | why |\n|---|---|\n{table}")},
        allow_retries=False,
    )
