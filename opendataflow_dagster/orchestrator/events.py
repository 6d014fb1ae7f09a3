"""Materialization events of chunks and the results of their checks, written in batches beside the work.

They are a second or two late. Events that a killed run could not write are reported by the heal sensor. None is lost.
The same version is reported twice if a process dies between the event and the mark in the ledger, or if the event of a
chunk that was made from it comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from logging import Logger

import dagster as dg

from ..engine.batch_thread import BatchThread
from ..engine.connections import Ledger
from ..engine.dataset_graph import DatasetGraph, DatasetNode
from ..engine.unreported import how_made, mark_reported, ready_versions
from ..model.ids import ChunkKey
from ..model.manifest import CheckResult
from .chunk_event import ChunkEvent
from .dagster_internals import (
    EventOrigin,
    storage_id,
    write_check_events,
    write_materialization_events,
    write_observation_events,
)
from .data_versions import KnownInputs, compared_inputs, data_version_tags
from .metadata import event_of
from .run_config import asset_key_of

_SECONDS = 1.0
_AT_ONCE = 500


class EventWriter:
    """Writes events of a DataSet in a thread of its own. When the block ends, all of them are written."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        ledger: Ledger,
        graph: DatasetGraph,
        node: DatasetNode,
        origin: EventOrigin,
        log: Logger,
    ) -> None:
        self._instance, self._ledger, self._graph, self._node = instance, ledger, graph, node
        self._origin, self._log = origin, log
        self._thread = BatchThread("odf-events", self._write, enough=_AT_ONCE, seconds=_SECONDS)
        self.add = self._thread.add

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.finish()

    def _write(self, batch: list[ChunkEvent]) -> None:
        try:
            write_events(self._instance, self._ledger, self._graph, self._node, batch, self._origin)
        except Exception as error:  # Dagster's storage raises many kinds; the chunks are published anyway
            self._log.warning(f"{len(batch)} events were not written; the heal sensor will report them: {error}")


def write_events(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    graph: DatasetGraph,
    node: DatasetNode,
    events: Sequence[ChunkEvent],
    origin: EventOrigin,
) -> None:
    """Events of one DataSet."""
    for begin in range(0, len(events), _AT_ONCE):
        batch = events[begin : begin + _AT_ONCE]
        tags = _tags(instance, ledger, graph, node, batch)
        told = [(event, of_event) for event, of_event in zip(batch, tags, strict=True) if event.metadata is not None]
        materializations = [
            dg.AssetMaterialization(
                asset_key=event.asset_key, partition=event.dataid, metadata=event.metadata, tags=of_event
            )
            for event, of_event in told
        ]
        write_materialization_events(instance, materializations, origin)
        if node.job is None:
            observations = [
                dg.AssetObservation(asset_key=event.asset_key, partition=event.dataid, tags=of_event)
                for event, of_event in told
            ]
            write_observation_events(instance, observations, origin)
        write_check_events(instance, [_evaluation(event, check) for event in batch for check in event.checks], origin)
        if manifest_ids := [event.manifest_id for event in batch if event.manifest_id is not None]:
            mark_reported(ledger, orchestrator_name(instance), manifest_ids)


def _tags(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    graph: DatasetGraph,
    node: DatasetNode,
    batch: Sequence[ChunkEvent],
) -> list[dict[str, str]]:
    inputs = [pin for event in batch for pin in compared_inputs(graph, node, event.made.inputs)]
    known = KnownInputs(instance, graph, inputs)
    if unknown := known.unknown(inputs):
        _write_inputs(instance, ledger, graph, unknown)
        known = KnownInputs(instance, graph, inputs)
    return [data_version_tags(graph, node, event.made, known) for event in batch]


def _write_inputs(
    instance: dg.DagsterInstance, ledger: Ledger, graph: DatasetGraph, keys: Collection[ChunkKey]
) -> None:
    """Dagster must know them before the chunks that were made from them."""
    versions = [manifest for manifest in ready_versions(ledger, keys).values() if manifest is not None]
    made = how_made(ledger, [manifest.manifest_id for manifest in versions])
    for node in graph.nodes.values():
        events = [
            event_of(
                asset_key_of(node),
                manifest.dataid,
                f"published by job {manifest.jobid}; reported with a chunk that was made from it",
                manifest,
                made.get(manifest.manifest_id),
            )
            for manifest in versions
            if manifest.datasetid == node.dataset.datasetid
        ]
        if events:
            make_partitions_known(instance, node, events)
            write_events(instance, ledger, graph, node, events, EventOrigin())


def make_partitions_known(instance: dg.DagsterInstance, node: DatasetNode, events: Sequence[ChunkEvent]) -> None:
    """Dagster must know a dynamic partition before it shows it."""
    if events and node.dataset.partitions is None:
        instance.add_dynamic_partitions(node.dataset.datasetid, [event.dataid for event in events])


def _evaluation(event: ChunkEvent, check: CheckResult) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=event.asset_key,
        check_name=check.name,
        partition=event.dataid,
        passed=check.passed,
        severity=dg.AssetCheckSeverity.WARN if check.severity == "warn" else dg.AssetCheckSeverity.ERROR,
        description=check.detail,
    )


def orchestrator_name(instance: dg.DagsterInstance) -> str:
    return f"dagster {storage_id(instance)}"
