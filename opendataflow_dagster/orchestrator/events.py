"""Dagster's events of chunks, written in batches beside the work.

One event written alone costs about 12 ms; a batch of hundreds costs less than one millisecond each. They are a second
or two late. What a killed run could not write any more, the heal sensor reports. None is lost; where a process dies
between the event and the note of it, the same version is told of twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from logging import Logger
from types import TracebackType

import dagster as dg
from dagster._core.events import (
    AssetMaterializationPlannedData,
    DagsterEvent,
    DagsterEventType,
    StepMaterializationData,
)
from dagster._core.events.log import EventLogEntry
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.storage.runs import SqlRunStorage
from dagster_postgres import PostgresEventLogStorage

from ..ledger import reports
from ..ledger.database import Ledger
from ..model.ids import ManifestId

_SECONDS = 1.0
_AT_ONCE = 500

# Its constructor has no types.
_NEW_ENTRY: Callable[..., EventLogEntry] = EventLogEntry

Metadata = Mapping[str, dg.MetadataValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Which step of which run an event belongs to; without one, to no run at all."""

    run_id: str = RUNLESS_RUN_ID
    job_name: str = RUNLESS_JOB_NAME
    step_key: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Materialized:
    asset_key: dg.AssetKey
    dataid: str
    metadata: Metadata
    #: The version that the event tells of.
    manifest_id: ManifestId | None = None


def orchestrator_name(instance: dg.DagsterInstance) -> str:
    """Another store of Dagster knows other events."""
    storage = instance.run_storage
    return f"dagster {storage.get_run_storage_id() if isinstance(storage, SqlRunStorage) else id(instance)}"


class EventWriter:
    """A thread that writes what it is given; at the end all of it is written."""

    def __init__(self, instance: dg.DagsterInstance, ledger: Ledger, origin: Origin, log: Logger) -> None:
        self._instance = instance
        self._ledger = ledger
        self._origin = origin
        self._log = log
        self._waiting: list[Materialized] = []
        self._change = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._write_all, name="odf-events", daemon=True)

    def __enter__(self) -> EventWriter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._change:
            self._over = True
            self._change.notify()
        self._thread.join()

    def add(self, one: Materialized) -> None:
        with self._change:
            self._waiting.append(one)
            if len(self._waiting) >= _AT_ONCE:
                self._change.notify()

    def _write_all(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._over or len(self._waiting) >= _AT_ONCE, timeout=_SECONDS)
                batch, self._waiting = self._waiting, []
                over = self._over
            self._write(batch)
            if over:
                return

    def _write(self, batch: list[Materialized]) -> None:
        try:
            write_materializations(self._instance, self._ledger, batch, self._origin)
        except Exception as error:  # Dagster's store has errors of every kind; the chunks are published all the same
            self._log.warning(f"{len(batch)} events were not written, the heal sensor will report them: {error}")


def write_materializations(
    instance: dg.DagsterInstance, ledger: Ledger, batch: Sequence[Materialized], origin: Origin
) -> None:
    for begin in range(0, len(batch), _AT_ONCE):
        portion = batch[begin : begin + _AT_ONCE]
        instance.event_log_storage.store_event_batch([_materialization(one, origin) for one in portion])
        if known := [one.manifest_id for one in portion if one.manifest_id is not None]:
            with ledger.statement() as statement:
                reports.report(statement, orchestrator_name(instance), known)


def write_planned(instance: dg.DagsterInstance, asset_key: dg.AssetKey, dataids: Iterable[str], origin: Origin) -> None:
    """Say which chunks a run intends to make. Without it a failed chunk would not show as failed."""
    entries = [_planned(asset_key, one, origin) for one in dataids]
    if not entries:
        return
    storage = instance.event_log_storage
    if not isinstance(storage, PostgresEventLogStorage):
        storage.store_event_batch(entries)
        return
    # Its own batch of planned events is one statement for each.
    for begin in range(0, len(entries), _AT_ONCE):
        with storage.index_connection() as connection:
            connection.execute(storage.prepare_insert_event_batch(entries[begin : begin + _AT_ONCE]))


def _materialization(one: Materialized, origin: Origin) -> EventLogEntry:
    made = dg.AssetMaterialization(asset_key=one.asset_key, partition=one.dataid, metadata=one.metadata)
    event = DagsterEvent(
        event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
        job_name=origin.job_name,
        step_key=origin.step_key,
        event_specific_data=StepMaterializationData(made),
        message=f"Materialized {one.asset_key.to_user_string()} {one.dataid}.",
    )
    return _entry(event, origin, logging.INFO)


def _planned(asset_key: dg.AssetKey, dataid: str, origin: Origin) -> EventLogEntry:
    planned = DagsterEvent.build_asset_materialization_planned_event(
        origin.job_name, origin.step_key or "", AssetMaterializationPlannedData(asset_key, partition=dataid)
    )
    return _entry(planned, origin, logging.DEBUG)


def _entry(event: DagsterEvent, origin: Origin, level: int) -> EventLogEntry:
    return _NEW_ENTRY(
        error_info=None,
        user_message="",
        level=level,
        run_id=origin.run_id,
        timestamp=time.time(),
        step_key=origin.step_key,
        job_name=origin.job_name,
        dagster_event=event,
    )
