"""The contract with private modules of Dagster. After an upgrade, a failure here names the feature that breaks."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.definitions.backfill_policy import BackfillPolicyType
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION
from dagster._core.events import (
    AssetMaterializationPlannedData,
    AssetObservationData,
    DagsterEvent,
    DagsterEventType,
    StepMaterializationData,
)
from dagster._core.events.log import EventLogEntry
from dagster._core.execution.asset_backfill import AssetBackfillData
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus, PartitionBackfill
from dagster._core.execution.context.system import StepExecutionContext
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
from dagster._core.storage.runs import SqlRunStorage
from dagster_postgres import PostgresEventLogStorage

import opendataflow_dagster
from opendataflow_dagster.orchestrator.dagster_internals import BackfillPolicy

PACKAGE = Path(opendataflow_dagster.__file__).parent

EVENTS = "materialization events of chunks (orchestrator/events.py)"
VERSIONS = "unsynced chunks in the UI (orchestrator/data_versions.py)"
CHECKS = "results of checks in the Checks tab (write_check_events)"
PLANNED = "failed chunks shown as failed in the UI (write_planned_events)"
BACKFILLS = "the readiness sensor leaving chunks to backfills (orchestrator/assigned_chunks.py)"
HEAL = "the heal sensor reporting each version once (orchestrator_name)"
RUNS = "a run making the chunks of its step (orchestrator/io_manager.py)"

#: What is called, with the parameters that we pass, and what depends on it.
CALLS: list[tuple[Callable[..., object], set[str], str]] = [
    (
        EventLogEntry,
        {"error_info", "user_message", "level", "run_id", "timestamp", "step_key", "job_name", "dagster_event"},
        EVENTS,
    ),
    (DagsterEvent, {"event_type_value", "job_name", "step_key", "event_specific_data", "message"}, EVENTS),
    (AssetObservationData, {"asset_observation"}, VERSIONS),
    (SqlEventLogStorage.get_latest_storage_id_by_partition, {"asset_key", "event_type", "partitions"}, VERSIONS),
    (
        SqlEventLogStorage.get_latest_tags_by_partition,
        {"asset_key", "event_type", "tag_keys", "asset_partitions"},
        VERSIONS,
    ),
    (StepMaterializationData, {"materialization"}, EVENTS),
    (SqlEventLogStorage.store_event_batch, {"self", "events"}, EVENTS),
    (SqlEventLogStorage.get_latest_storage_id_by_partition, {"asset_key", "event_type", "partitions"}, CHECKS),
    (DagsterEvent.build_asset_materialization_planned_event, {"job_name", "step_key"}, PLANNED),
    (AssetMaterializationPlannedData, {"asset_key", "partition"}, PLANNED),
    (PostgresEventLogStorage.index_connection, {"self"}, PLANNED),
    (PostgresEventLogStorage.prepare_insert_event_batch, {"self", "events"}, PLANNED),
    (dg.DagsterInstance.get_backfills, {"self", "filters"}, BACKFILLS),
    (SqlRunStorage.get_run_storage_id, {"self"}, HEAL),
]

#: What is read, with the attributes that we read, and what depends on it.
ATTRIBUTES: list[tuple[type, set[str], str]] = [
    (BulkActionsFilter, {"statuses"}, BACKFILLS),
    (PartitionBackfill, {"backfill_id", "asset_backfill_data", "backfill_timestamp"}, BACKFILLS),
    (AssetBackfillData, {"target_subset", "materialized_subset", "failed_and_downstream_subset"}, BACKFILLS),
    (AssetGraphSubset, {"partitions_subsets_by_asset_key"}, BACKFILLS),
    (AssetCheckEvaluationTargetMaterializationData, {"storage_id", "run_id", "timestamp"}, CHECKS),
    (StepExecutionContext, {"instance", "run_id", "job_name", "step", "dagster_run", "log"}, RUNS),
]


@pytest.mark.parametrize(("call", "parameters", "feature"), CALLS, ids=lambda part: getattr(part, "__qualname__", ""))
def test_private_call_takes_our_parameters(call: Callable[..., object], parameters: set[str], feature: str) -> None:
    known = set(inspect.signature(call).parameters)
    assert parameters <= known, f"{feature} depends on {call.__qualname__}({', '.join(sorted(parameters - known))})"


@pytest.mark.parametrize(("kind", "attributes", "feature"), ATTRIBUTES, ids=lambda part: getattr(part, "__name__", ""))
def test_private_class_has_our_attributes(kind: type, attributes: set[str], feature: str) -> None:
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    missing = {name for name in attributes - fields if not hasattr(kind, name)}
    assert not missing, f"{feature} depends on {', '.join(sorted(missing))} of {kind.__qualname__}"


def test_private_constants_have_their_meaning() -> None:
    assert SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION == "__source_asset_observation__", (
        "one event per chunk instead of two depends on this mark (orchestrator/assets.py)"
    )
    assert RUNLESS_RUN_ID == "", f"{HEAL}: events outside of a run"
    assert RUNLESS_JOB_NAME == "", f"{HEAL}: events outside of a run"
    assert DagsterEventType.ASSET_CHECK_EVALUATION.value == "ASSET_CHECK_EVALUATION", CHECKS
    assert DagsterEventType.ASSET_MATERIALIZATION.value == "ASSET_MATERIALIZATION", EVENTS
    open_statuses = {BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING}
    assert open_statuses <= set(BulkActionStatus), BACKFILLS


def test_the_result_of_a_check_replaces_one_of_the_same_run() -> None:
    (key,) = [index for index in AssetCheckExecutionsTable.indexes if index.unique]
    assert [column.name for column in key.columns] == ["asset_key", "check_name", "run_id", "partition"], CHECKS
    columns = {"evaluation_event", "evaluation_event_storage_id", "materialization_event_storage_id"}
    assert columns <= set(AssetCheckExecutionsTable.c.keys()), CHECKS


def test_a_marked_output_has_no_event_of_dagster() -> None:
    @dg.multi_asset(outs={"result": dg.AssetOut(key="marked", io_manager_key="none")})
    def marked() -> dg.Output[int]:
        return dg.Output(1, metadata={SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True})

    done = dg.materialize([marked], resources={"none": dg.mem_io_manager})

    assert done.asset_materializations_for_node("marked") == [], (
        "one event per chunk instead of two depends on Dagster writing none for this output"
    )


def test_dagsters_daemon_divides_a_backfill_although_a_range_in_one_process_is_allowed() -> None:
    policy = BackfillPolicy(7)

    assert policy.policy_type == BackfillPolicyType.SINGLE_RUN, "dagster asset materialize --partition-range"
    read = dg.deserialize_value(dg.serialize_value(policy))
    assert type(read) is dg.BackfillPolicy, "the runs of a backfill (orchestrator/assets.py)"
    assert read == dg.BackfillPolicy.multi_run(7)
    assert read.policy_type == BackfillPolicyType.MULTI_RUN


def test_only_the_adapter_imports_private_modules() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if "dagster._" in path.read_text()]

    assert [path.name for path in files] == ["dagster_internals.py"]
