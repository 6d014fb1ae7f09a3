"""The IO manager: makes and publishes the chunks of a DataSet, and reads chunks for plain Dagster assets.

The asset of a DataSet returns a ChunkRequest. `handle_output` makes its chunks; each reads its inputs through the
versions that its claim pinned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import dagster as dg

from ..engine.catalog_table import update_table
from ..engine.connections import Ledger
from ..engine.dataset_graph import DatasetGraph, DatasetNode
from ..engine.dataset_run import DatasetRun
from ..engine.heartbeat import heartbeat
from ..engine.orchestrator_runs import close_run
from ..engine.other_runs import wait_for_other_runs
from ..engine.reading import read_chunks
from ..engine.retry import Retry
from ..engine.run_result import ChunkResult, RunResult
from ..engine.unreported import how_made
from ..model.errors import InvalidInput
from ..model.ids import DataId, RunId, dataset_id
from ..model.job import Job
from ..model.manifest import Manifest
from ..model.text import listing
from ..protocol.job_run import begin_run, end_run
from ..protocol.request import request
from . import metadata
from .assigned_chunks import additional_chunks
from .dagster_internals import EventOrigin, StepExecutionContext, write_planned_events
from .events import EventWriter
from .resources import LedgerResource, SparkResource
from .run_config import asset_key_of, labels
from .run_status_sensors import is_cancelled
from .trigger import trigger_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class ChunkRequest:
    """What the asset of a DataSet returns: the chunks that the run is to make."""

    node: DatasetNode
    job: Job
    graph: DatasetGraph
    dataids: tuple[DataId, ...]
    #: Those that Dagster itself has planned. The others come from the run configuration.
    planned: frozenset[str]


class DatasetIOManager(dg.ConfigurableIOManager):
    ledger: LedgerResource
    spark: SparkResource
    #: How many chunks a run makes at a time; 0: two per core, so that one computes while another waits for I/O.
    chunks_at_once: int = 0

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        if not isinstance(obj, ChunkRequest):
            raise InvalidInput(
                f"this IO manager publishes chunks of DataSets, not {type(obj).__name__}; declare the asset with "
                f"@dataset, or give it another IO manager"
            )
        step, ledger = context.step_context, self.ledger.ledger
        origin = EventOrigin(run_id=step.run_id, job_name=step.job_name, step_key=step.step.key)
        with (
            _ledger_run(ledger, obj.job, step) as run_id,
            EventWriter(step.instance, ledger, obj.graph, obj.node, origin, context.log) as events,
        ):
            made = self._make_chunks(obj, ledger, run_id, events, origin, step)
            not_made = made.result.reasons()
            context.add_output_metadata(
                {"made": len(made.result.published), "satisfied": len(made.satisfied), "not_made": len(not_made)}
            )
            if not_made:
                raise _failure(obj, not_made, made.requested, made.result.tracebacks)

    def load_input(self, context: dg.InputContext) -> DataFrame:
        """The current versions of the chunks that a plain Dagster asset reads, as one DataFrame."""
        datasetid = dataset_id(context.asset_key.path[-1])
        if not context.has_asset_partitions:
            raise InvalidInput(
                f"which chunks of {datasetid} to read is unknown; partition the asset, or give its input a partition "
                f"mapping"
            )
        dataids = [DataId(partition) for partition in context.asset_partition_keys]
        return read_chunks(self.ledger.ledger, self.spark.spark_session, datasetid, dataids)

    def _make_chunks(
        self,
        requested: ChunkRequest,
        ledger: Ledger,
        run_id: RunId,
        events: EventWriter,
        origin: EventOrigin,
        step: StepExecutionContext,
    ) -> _Made:
        node, job, instance = requested.node, requested.job, step.instance
        asset_key, partitions = asset_key_of(node), node.dataset.partitions
        trigger, retry = trigger_of(instance, step.dagster_run), Retry(step.log)

        def report(chunk: ChunkResult) -> None:
            if event := metadata.event_of_result(asset_key, chunk):
                events.add(event)

        run = DatasetRun(
            ledger=ledger,
            graph=requested.graph,
            node=node,
            run_id=run_id,
            start_spark=lambda: self.spark.spark_session,
            at_once=self.chunks_at_once or 2 * (os.cpu_count() or 1),
            log=step.log,
            on_result=report,
        )
        result, satisfied, seen = RunResult(), dict[DataId, Manifest | None](), set[DataId]()
        portion, when = list(requested.dataids), trigger.requested
        while portion:
            seen.update(portion)
            instance.add_run_tags(step.run_id, labels(seen))
            known = [dataid for dataid in portion if partitions is None or partitions.has(dataid)]
            satisfied |= retry(
                partial(
                    request,
                    ledger,
                    job,
                    known,
                    by=trigger.by,
                    requested=when,
                    run_id=run_id,
                    reason="requested in Dagster",
                )
            ).satisfied
            wanted = [dataid for dataid in portion if dataid not in satisfied]
            unplanned = [dataid for dataid in wanted if dataid not in requested.planned]
            write_planned_events(instance, asset_key, unplanned, origin)
            run.make(wanted, result)
            if result.at_limit:
                break
            # Chunks that became runnable while this run worked. No person requested them.
            portion, when = additional_chunks(instance, ledger, job.jobid, asset_key, step.run_id, trigger, seen), None
        # Dagster shows a planned chunk without an event as failed or missing.
        told = {dataid: manifest for dataid, manifest in satisfied.items() if dataid in requested.planned}
        by_others = wait_for_other_runs(ledger, node.dataset.datasetid, result)
        _report_satisfied(asset_key, ledger, told | by_others, events)
        if node.declaration.table and result.published:
            update_table(ledger, self.spark.spark_session, node.declaration, result.published, step.log)
        return _Made(result=result, satisfied=satisfied | by_others, requested=len(seen))


@dataclass(frozen=True, kw_only=True)
class _Made:
    result: RunResult
    #: Chunks that were READY already, or that other runs made.
    satisfied: Mapping[DataId, Manifest | None]
    #: How many chunks the run had, including those that it took on later.
    requested: int


@contextmanager
def _ledger_run(ledger: Ledger, job: Job, step: StepExecutionContext) -> Iterator[RunId]:
    """The run in the ledger. If the block fails, its claims are released at once."""
    retry = Retry(step.log)
    run_id = retry(lambda: begin_run(ledger, job.jobid, runner="dagster", external_id=step.run_id))
    try:
        with heartbeat(ledger, run_id):
            yield run_id
    except BaseException:
        # Raise the original error. If the ledger or Dagster's storage is unavailable, the sensors close the run.
        with suppress(Exception):
            run = step.instance.get_run_by_id(step.run_id) or step.dagster_run
            close_run(ledger, run_id, step.run_id, cancelled=is_cancelled(run))
        raise
    retry(lambda: end_run(ledger, run_id))


def _report_satisfied(
    asset_key: dg.AssetKey, ledger: Ledger, satisfied: Mapping[DataId, Manifest | None], events: EventWriter
) -> None:
    note = "it was already READY when its turn came; nothing was run"
    how = how_made(ledger, [manifest.manifest_id for manifest in satisfied.values() if manifest is not None])
    for dataid, manifest in satisfied.items():
        made = how.get(manifest.manifest_id) if manifest else None
        events.add(metadata.event_of(asset_key, dataid, note, manifest, made))


def _failure(
    requested: ChunkRequest, not_made: Mapping[DataId, str], total: int, tracebacks: Mapping[DataId, str]
) -> dg.Failure:
    """The description has the first traceback of the author's code: the failed step shows it without a click."""
    reasons = listing([f"{dataid}: {reason}" for dataid, reason in not_made.items()], _SHOWN, "; ")
    rows = "".join(
        f"| {dataid} | {' '.join(reason.split())[:300]} |\n" for dataid, reason in list(not_made.items())[:1000]
    )
    different: dict[str, list[DataId]] = {}
    for dataid, trace in tracebacks.items():
        different.setdefault(trace, []).append(dataid)
    sections = [f"{listing(dataids, _SHOWN)}:\n{trace}" for trace, dataids in different.items()][:_SHOWN]
    description = f"{len(not_made)} of {total} chunks of {requested.node.dataset.datasetid} were not made: {reasons}"
    return dg.Failure(
        description="\n\n".join([description, *sections[:1]]),
        metadata={
            "not_made": dg.MetadataValue.md(f"| chunk | why |\n|---|---|\n{rows}"),
            **({"tracebacks": dg.MetadataValue.text("\n\n".join(sections))} if sections else {}),
        },
        allow_retries=False,
    )
