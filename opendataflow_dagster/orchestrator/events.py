"""Materialization events of chunks, written in batches beside the work, a second or two late.

Events that a killed run could not write are reported by the heal sensor. None is lost; if a process dies between the
event and the mark in the ledger, the same version is reported twice.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from logging import Logger
from types import TracebackType

import dagster as dg

from ..engine.connections import Ledger
from ..engine.unreported import mark_reported
from ..model.ids import ManifestId
from .dagster_internals import EventOrigin, storage_id, write_materialization_events

_SECONDS = 1.0
_AT_ONCE = 500

Metadata = Mapping[str, dg.MetadataValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkMaterialized:
    asset_key: dg.AssetKey
    dataid: str
    metadata: Metadata
    #: The version that the event reports; None: READY without a version.
    manifest_id: ManifestId | None = None


class EventWriter:
    """Writes events in a thread of its own. When the block ends, all of them are written."""

    def __init__(self, instance: dg.DagsterInstance, ledger: Ledger, origin: EventOrigin, log: Logger) -> None:
        self._instance, self._ledger, self._origin, self._log = instance, ledger, origin, log
        self._waiting: list[ChunkMaterialized] = []
        self._change = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="odf-events", daemon=True)

    def __enter__(self) -> EventWriter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._change:
            self._closed = True
            self._change.notify()
        self._thread.join()

    def add(self, event: ChunkMaterialized) -> None:
        with self._change:
            self._waiting.append(event)
            if len(self._waiting) >= _AT_ONCE:
                self._change.notify()

    def _write_all(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._closed or len(self._waiting) >= _AT_ONCE, timeout=_SECONDS)
                batch, self._waiting = self._waiting, []
                closed = self._closed
            try:
                write_events(self._instance, self._ledger, batch, self._origin)
            except Exception as error:  # Dagster's storage raises many kinds; the chunks are published anyway
                self._log.warning(f"{len(batch)} events were not written; the heal sensor will report them: {error}")
            if closed:
                return


def write_events(
    instance: dg.DagsterInstance, ledger: Ledger, events: Sequence[ChunkMaterialized], origin: EventOrigin
) -> None:
    for begin in range(0, len(events), _AT_ONCE):
        batch = events[begin : begin + _AT_ONCE]
        materializations = [
            dg.AssetMaterialization(asset_key=event.asset_key, partition=event.dataid, metadata=event.metadata)
            for event in batch
        ]
        write_materialization_events(instance, materializations, origin)
        if manifest_ids := [event.manifest_id for event in batch if event.manifest_id is not None]:
            mark_reported(ledger, orchestrator_name(instance), manifest_ids)


def orchestrator_name(instance: dg.DagsterInstance) -> str:
    return f"dagster {storage_id(instance)}"
