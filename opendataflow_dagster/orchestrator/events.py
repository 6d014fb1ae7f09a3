"""Materialization events of chunks and the results of their checks, written in batches beside the work.

They are a second or two late. Events that a killed run could not write are reported by the heal sensor. None is lost;
if a process dies between the event and the mark in the ledger, the same version is reported twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from logging import Logger

import dagster as dg

from ..engine.batch_thread import BatchThread
from ..engine.connections import Ledger
from ..engine.unreported import mark_reported
from ..model.ids import ManifestId
from ..model.manifest import CheckResult
from .dagster_internals import EventOrigin, storage_id, write_check_events, write_materialization_events

_SECONDS = 1.0
_AT_ONCE = 500

Metadata = Mapping[str, dg.MetadataValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkEvent:
    asset_key: dg.AssetKey
    dataid: str
    #: None: it was checked, and not published.
    metadata: Metadata | None
    checks: tuple[CheckResult, ...] = ()
    #: The version that the event reports; None: READY without a version.
    manifest_id: ManifestId | None = None


class EventWriter:
    """Writes events in a thread of its own. When the block ends, all of them are written."""

    def __init__(self, instance: dg.DagsterInstance, ledger: Ledger, origin: EventOrigin, log: Logger) -> None:
        self._instance, self._ledger, self._origin, self._log = instance, ledger, origin, log
        self._thread = BatchThread("odf-events", self._write, enough=_AT_ONCE, seconds=_SECONDS)
        self.add = self._thread.add

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.finish()

    def _write(self, batch: list[ChunkEvent]) -> None:
        try:
            write_events(self._instance, self._ledger, batch, self._origin)
        except Exception as error:  # Dagster's storage raises many kinds; the chunks are published anyway
            self._log.warning(f"{len(batch)} events were not written; the heal sensor will report them: {error}")


def write_events(
    instance: dg.DagsterInstance, ledger: Ledger, events: Sequence[ChunkEvent], origin: EventOrigin
) -> None:
    for begin in range(0, len(events), _AT_ONCE):
        batch = events[begin : begin + _AT_ONCE]
        materializations = [
            dg.AssetMaterialization(asset_key=event.asset_key, partition=event.dataid, metadata=event.metadata)
            for event in batch
            if event.metadata is not None
        ]
        write_materialization_events(instance, materializations, origin)
        write_check_events(instance, [_evaluation(event, check) for event in batch for check in event.checks], origin)
        if manifest_ids := [event.manifest_id for event in batch if event.manifest_id is not None]:
            mark_reported(ledger, orchestrator_name(instance), manifest_ids)


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
