"""Every private Dagster module that this project uses, and nothing else.

Dagster may change these in any release. tests/dagster/test_dagster_internals.py says for each which feature depends on
it, so that an upgrade that breaks one fails there and not in a run.
"""

from __future__ import annotations

import logging
import re
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.definitions.backfill_policy import BackfillPolicyType
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    NULL_EVENT_POINTER,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)
from dagster._core.definitions.data_version import (
    SKIP_PARTITION_DATA_VERSION_DEPENDENCY_THRESHOLD as MOST_COMPARED_PARTITIONS,
)
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.events import (
    AssetMaterializationPlannedData,
    AssetObservationData,
    DagsterEvent,
    DagsterEventType,
    StepMaterializationData,
)
from dagster._core.events.log import EventLogEntry
from dagster._core.execution.asset_backfill import AssetBackfillData
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
from dagster._core.execution.context.system import StepExecutionContext
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, SqlEventLogStorageTable
from dagster._core.storage.runs import SqlRunStorage
from dagster_postgres import PostgresEventLogStorage
from sqlalchemy.dialects import postgresql

__all__ = [
    "CODE_VERSION_TAG",
    "DATA_VERSION_IS_USER_PROVIDED_TAG",
    "DATA_VERSION_TAG",
    "MOST_COMPARED_PARTITIONS",
    "NO_EVENTS_BY_DAGSTER",
    "NULL_EVENT_POINTER",
    "AssetBackfillData",
    "BackfillPolicy",
    "ChunkCheckSpec",
    "EventOrigin",
    "KnownEvent",
    "StepExecutionContext",
    "UnresolvedAssetJobDefinition",
    "get_input_data_version_tag",
    "get_input_event_pointer_tag",
    "known_events",
    "open_backfills",
    "storage_id",
    "will_materialize",
    "write_check_events",
    "write_materialization_events",
    "write_observation_events",
    "write_planned_events",
]

#: On the output of a step: this project writes an event for each chunk while the run goes on, so Dagster must not write
#: one per partition at the end, nor one without a partition where chunks come from the run configuration.
NO_EVENTS_BY_DAGSTER: Final = {SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True}

_OPEN_BACKFILLS = (BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING)
_EVENTS_AT_ONCE = 500
_SUCCEEDED, _FAILED = AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED
# The constructor is untyped.
_new_entry: Callable[..., EventLogEntry] = EventLogEntry


@dataclass(frozen=True, kw_only=True, slots=True)
class EventOrigin:
    """The step of the run that an event belongs to. By default an event belongs to no run."""

    run_id: str = RUNLESS_RUN_ID
    job_name: str = RUNLESS_JOB_NAME
    step_key: str | None = None


class ChunkCheckSpec(dg.AssetCheckSpec):
    """A check with the name that the ledger has, such as `between(delay, 0, 60)`, which no output may have."""

    def get_python_identifier(self) -> str:
        readable = re.sub("[^A-Za-z0-9]+", "_", self.name).strip("_")
        return f"check_{readable}_{zlib.crc32(self.name.encode()):08x}"


class BackfillPolicy(dg.BackfillPolicy):
    """A backfill is divided into runs, while `dagster asset materialize --partition-range`, which asks for the type,
    runs any range in its own process: a run of a DataSet makes any number of chunks.

    Dagster writes a policy under the name of its class, so that its daemon reads one of its own.
    """

    @property
    def policy_type(self) -> BackfillPolicyType:
        return BackfillPolicyType.SINGLE_RUN


def storage_id(instance: dg.DagsterInstance) -> str:
    """Identifies Dagster's storage: another storage has other events."""
    storage = instance.run_storage
    return storage.get_run_storage_id() if isinstance(storage, SqlRunStorage) else str(id(instance))


def open_backfills(instance: dg.DagsterInstance) -> dict[str, AssetBackfillData]:
    """The asset backfills that are still in progress."""
    backfills = instance.get_backfills(filters=BulkActionsFilter(statuses=list(_OPEN_BACKFILLS)))
    return {
        backfill.backfill_id: backfill.asset_backfill_data
        for backfill in backfills
        if backfill.asset_backfill_data is not None
    }


def will_materialize(backfill: AssetBackfillData, asset_key: dg.AssetKey, partition: str) -> bool:
    """The backfill targets the partition, and has neither materialized nor failed it."""

    def contains(subset: AssetGraphSubset) -> bool:
        partitions = subset.partitions_subsets_by_asset_key
        return asset_key in partitions and partition in partitions[asset_key]

    return (
        contains(backfill.target_subset)
        and not contains(backfill.materialized_subset)
        and not contains(backfill.failed_and_downstream_subset)
    )


def write_materialization_events(
    instance: dg.DagsterInstance, materializations: Sequence[dg.AssetMaterialization], origin: EventOrigin
) -> None:
    """One batch: an event written alone costs about 12 ms, in a batch of hundreds less than 1 ms."""
    instance.event_log_storage.store_event_batch(
        [_materialization_entry(materialization, origin) for materialization in materializations]
    )


def write_observation_events(
    instance: dg.DagsterInstance, observations: Sequence[dg.AssetObservation], origin: EventOrigin
) -> None:
    """One batch."""
    instance.event_log_storage.store_event_batch(
        [_observation_entry(observation, origin) for observation in observations]
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownEvent:
    """The newest event of a partition."""

    storage_id: int
    data_version: str | None


def known_events(
    instance: dg.DagsterInstance, asset_key: dg.AssetKey, partitions: set[str], *, observed: bool
) -> dict[str, KnownEvent]:
    """`observed`: of observations instead of materializations."""
    kind = DagsterEventType.ASSET_OBSERVATION if observed else DagsterEventType.ASSET_MATERIALIZATION
    storage = instance.event_log_storage
    # The event first: with a newer version than the event's, a chunk shows as unsynced, and it is.
    events = storage.get_latest_storage_id_by_partition(asset_key, kind, partitions)
    tags = storage.get_latest_tags_by_partition(
        asset_key, kind, [DATA_VERSION_TAG], asset_partitions=sorted(partitions)
    )
    return {
        partition: KnownEvent(storage_id=event, data_version=tags.get(partition, {}).get(DATA_VERSION_TAG))
        for partition, event in events.items()
    }


def write_check_events(
    instance: dg.DagsterInstance, evaluations: Sequence[dg.AssetCheckEvaluation], origin: EventOrigin
) -> None:
    """One batch, after the materializations that were checked. A result replaces one that the same run has planned or
    reported, and results outside of a run replace each other."""
    storage = instance.event_log_storage
    by_key = {(evaluation.asset_check_key, evaluation.partition): evaluation for evaluation in evaluations}
    if not isinstance(storage, PostgresEventLogStorage):
        for evaluation in by_key.values():
            storage.store_event(_check_entry(evaluation, origin))
        return
    for begin in range(0, len(by_key), _EVENTS_AT_ONCE):
        _write_checks(storage, list(by_key.values())[begin : begin + _EVENTS_AT_ONCE], origin)


def _write_checks(
    storage: PostgresEventLogStorage, evaluations: Sequence[dg.AssetCheckEvaluation], origin: EventOrigin
) -> None:
    partitions: dict[dg.AssetKey, set[str]] = {}
    for evaluation in evaluations:
        partitions.setdefault(evaluation.asset_key, set()).add(evaluation.partition or "")
    # The UI shows a result only if it is of the newest materialization.
    newest = {
        asset_key: storage.get_latest_storage_id_by_partition(
            asset_key, DagsterEventType.ASSET_MATERIALIZATION, of_asset
        )
        for asset_key, of_asset in partitions.items()
    }
    targets = [newest[evaluation.asset_key].get(evaluation.partition or "") for evaluation in evaluations]
    entries = [
        _check_entry(_targeting(evaluation, target, origin), origin)
        for evaluation, target in zip(evaluations, targets, strict=True)
    ]
    with storage.index_connection() as connection:
        insert = storage.prepare_insert_event_batch(entries).returning(SqlEventLogStorageTable.c.id)
        event_ids = [row[0] for row in connection.execute(insert).fetchall()]
        table = AssetCheckExecutionsTable
        rows = [
            {
                "asset_key": evaluation.asset_key.to_string(),
                "check_name": evaluation.check_name,
                "partition": evaluation.partition,
                "run_id": origin.run_id,
                "execution_status": (_SUCCEEDED if evaluation.passed else _FAILED).value,
                "evaluation_event": dg.serialize_value(entry),
                "evaluation_event_timestamp": datetime.fromtimestamp(entry.timestamp, UTC).replace(tzinfo=None),
                "evaluation_event_storage_id": event_id,
                "materialization_event_storage_id": target,
            }
            for evaluation, entry, event_id, target in zip(evaluations, entries, event_ids, targets, strict=True)
        ]
        upsert = postgresql.insert(table).values(rows)
        # Dagster takes the row with the highest id for the newest result.
        replaced = {name: upsert.excluded[name] for name in (*rows[0], "id", "create_timestamp")}
        key = [table.c.asset_key, table.c.check_name, table.c.run_id, table.c.partition]
        connection.execute(upsert.on_conflict_do_update(index_elements=key, set_=replaced))


def _targeting(
    evaluation: dg.AssetCheckEvaluation, storage_id: int | None, origin: EventOrigin
) -> dg.AssetCheckEvaluation:
    if storage_id is None:
        return evaluation
    target = AssetCheckEvaluationTargetMaterializationData(
        storage_id=storage_id, run_id=origin.run_id, timestamp=time.time()
    )
    return dg.AssetCheckEvaluation(
        asset_key=evaluation.asset_key,
        check_name=evaluation.check_name,
        passed=evaluation.passed,
        metadata=evaluation.metadata,
        target_materialization_data=target,
        severity=evaluation.severity,
        description=evaluation.description,
        partition=evaluation.partition,
    )


def write_planned_events(
    instance: dg.DagsterInstance, asset_key: dg.AssetKey, partitions: Iterable[str], origin: EventOrigin
) -> None:
    """Record which partitions a run intends to make. Without it a failed chunk would not show as failed."""
    entries = [_planned_entry(asset_key, partition, origin) for partition in partitions]
    if not entries:
        return
    storage = instance.event_log_storage
    if not isinstance(storage, PostgresEventLogStorage):
        storage.store_event_batch(entries)
        return
    # store_event_batch of planned events would run one statement for each.
    for begin in range(0, len(entries), _EVENTS_AT_ONCE):
        with storage.index_connection() as connection:
            connection.execute(storage.prepare_insert_event_batch(entries[begin : begin + _EVENTS_AT_ONCE]))


def _materialization_entry(materialization: dg.AssetMaterialization, origin: EventOrigin) -> EventLogEntry:
    event = DagsterEvent(
        event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
        job_name=origin.job_name,
        step_key=origin.step_key,
        event_specific_data=StepMaterializationData(materialization),
        message=f"Materialized {materialization.asset_key.to_user_string()} {materialization.partition}.",
    )
    return _entry(event, origin, logging.INFO)


def _observation_entry(observation: dg.AssetObservation, origin: EventOrigin) -> EventLogEntry:
    event = DagsterEvent(
        event_type_value=DagsterEventType.ASSET_OBSERVATION.value,
        job_name=origin.job_name,
        step_key=origin.step_key,
        event_specific_data=AssetObservationData(observation),
        message=f"Observed {observation.asset_key.to_user_string()} {observation.partition}.",
    )
    return _entry(event, origin, logging.INFO)


def _check_entry(evaluation: dg.AssetCheckEvaluation, origin: EventOrigin) -> EventLogEntry:
    event = DagsterEvent(
        event_type_value=DagsterEventType.ASSET_CHECK_EVALUATION.value,
        job_name=origin.job_name,
        step_key=origin.step_key,
        event_specific_data=evaluation,
        message=f"{evaluation.partition}: {evaluation.check_name} {'passed' if evaluation.passed else 'failed'}: "
        f"{evaluation.description}",
    )
    return _entry(event, origin, logging.INFO)


def _planned_entry(asset_key: dg.AssetKey, partition: str, origin: EventOrigin) -> EventLogEntry:
    event = DagsterEvent.build_asset_materialization_planned_event(
        origin.job_name, origin.step_key or "", AssetMaterializationPlannedData(asset_key, partition=partition)
    )
    return _entry(event, origin, logging.DEBUG)


def _entry(event: DagsterEvent, origin: EventOrigin, level: int) -> EventLogEntry:
    return _new_entry(
        error_info=None,
        user_message="",
        level=level,
        run_id=origin.run_id,
        timestamp=time.time(),
        step_key=origin.step_key,
        job_name=origin.job_name,
        dagster_event=event,
    )
