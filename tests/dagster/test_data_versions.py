"""Dagster shows the same chunks as unsynced that the ledger knows to be stale, or made by other code."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from pyspark.sql import SparkSession

from opendataflow_dagster import ALL, LedgerResource, daily, dataset, external_dataset, sql_dataset, within
from opendataflow_dagster.engine.declaration import Declaration
from opendataflow_dagster.model.ids import DataId, DatasetId
from opendataflow_dagster.model.job import ListedChunks
from opendataflow_dagster.model.manifest import NewManifest, made_by
from opendataflow_dagster.model.partitions import monthly, static
from opendataflow_dagster.orchestrator.heal_sensor import heal_sensor
from opendataflow_dagster.protocol.announce import announce
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.dagster_project import Project
from tests.factories import key

DAYS = daily("2024-01-01", "2024-01-10")
MONTH = "2024-01-01"
NEW_INPUT = "has a new data version"
NEW_CODE = "has a new code version"


def day(number: int) -> str:
    return f"2024-01-{number:02}"


raw = sql_dataset("select :dataid as chunk", "raw", partitions=DAYS)
tidy = sql_dataset("select chunk from raw", "tidy", partitions=DAYS)
final = sql_dataset("select chunk from tidy", "final", partitions=DAYS)


def causes(project: Project, name: str, dataids: Iterable[str]) -> dict[str, list[str]]:
    """Why Dagster shows chunks as unsynced, as its UI asks."""
    assert project.definitions is not None
    graph = project.definitions.resolve_asset_graph()
    resolver = CachingStaleStatusResolver(project.instance, graph, LoadingContextForTest(project.instance))
    found: dict[str, list[str]] = {}
    for dataid in dataids:
        status = resolver.get_status(dg.AssetKey(name), dataid)
        reasons = [cause.reason for cause in resolver.get_stale_root_causes(dg.AssetKey(name), dataid)]
        assert (status.value == "STALE") == bool(reasons)
        found[dataid] = reasons if status.value != "MISSING" else ["missing"]
    return found


def heal(project: Project) -> None:
    assert project.graph is not None
    context = dg.build_sensor_context(
        instance=project.instance,
        definitions=project.definitions,
        resources={"ledger": LedgerResource(patience_seconds=1)},
    )
    heal_sensor(project.graph, grace=timedelta(0)).evaluate_tick(context)


def make_again(project: Project, name: str, dataid: str) -> None:
    resubmit(project.flow.ledger, [key(f"{name}/{dataid}")], by="test")
    assert project.launch(name, dataid).success


def test_a_new_version_of_an_input_makes_exactly_its_consumers_unsynced_until_they_are_made_again(
    project: Project,
) -> None:
    project.build(raw, tidy, final)
    for name in ("raw", "tidy", "final"):
        assert project.launch_range(name, day(1), day(3)).success
    for name in ("raw", "tidy", "final"):
        assert causes(project, name, [day(1), day(2), day(3)]) == {day(1): [], day(2): [], day(3): []}

    make_again(project, "raw", day(2))

    assert causes(project, "tidy", [day(1), day(2), day(3)]) == {day(1): [], day(2): [NEW_INPUT], day(3): []}
    make_again(project, "tidy", day(2))
    assert causes(project, "tidy", [day(2)]) == {day(2): []}
    assert causes(project, "final", [day(1), day(2)]) == {day(1): [], day(2): [NEW_INPUT]}


def test_changed_code_makes_the_chunks_that_it_did_not_make_unsynced(project: Project) -> None:
    project.build(raw, tidy)
    project.launch_range("raw", day(1), day(2))
    project.launch_range("tidy", day(1), day(2))

    edited = sql_dataset("select upper(chunk) as chunk from raw", "tidy", partitions=DAYS)
    project.build(raw, edited)

    assert causes(project, "raw", [day(1)]) == {day(1): []}
    assert causes(project, "tidy", [day(1), day(2)]) == {day(1): [NEW_CODE], day(2): [NEW_CODE]}
    make_again(project, "tidy", day(2))
    assert causes(project, "tidy", [day(1), day(2)]) == {day(1): [NEW_CODE], day(2): []}


def test_a_declared_code_version_is_the_code_version_of_the_asset(project: Project) -> None:
    @dataset("made", partitions=DAYS, code_version="7")
    def made(context):  # type: ignore[no-untyped-def]
        return context.spark.range(1)

    definitions = project.build(made)
    assert definitions.resolve_asset_graph().get(dg.AssetKey("made")).code_version == "7"
    project.launch("made", day(1))
    (record,) = project.instance.fetch_materializations(dg.AssetKey("made"), limit=1).records
    assert record.asset_materialization is not None
    tags = record.asset_materialization.tags or {}
    assert (tags["dagster/code_version"], tags["dagster/data_version"]) == ("7", "1")


@pytest.mark.parametrize("first", ["the consumer", "heal"])
def test_a_new_version_that_another_client_announces_makes_its_consumers_unsynced(
    project: Project, spark: SparkSession, first: str
) -> None:
    landing = external_dataset("landing", partitions=DAYS)
    project.build(reader_of(landing), landing)
    deliver(project, spark, 1)
    if first == "heal":
        heal(project)
    # The run tells Dagster of the delivery if heal did not yet.
    assert project.launch("reader", day(1)).success
    heal(project)
    assert causes(project, "reader", [day(1)]) == {day(1): []}
    assert len(project.materializations("landing")) == 1

    deliver(project, spark, 2)
    heal(project)
    assert causes(project, "reader", [day(1)]) == {day(1): [NEW_INPUT]}


def reader_of(landing: Declaration) -> Declaration:
    @dataset("reader", partitions=DAYS, inputs={"source": landing}, code_version="1")
    def reader(context, source):  # type: ignore[no-untyped-def]
        return context.spark.range(1)

    return reader


def deliver(project: Project, spark: SparkSession, number: int) -> None:
    folder = project.flow.root / f"delivery-{number}"
    spark.range(number).write.parquet(str(folder))
    manifest = NewManifest(location=str(folder), row_count=number)
    announce(project.flow.ledger, "landing", [day(1)], by="vendor", manifests={DataId(day(1)): manifest})


def publish_elsewhere(project: Project, name: str) -> None:
    """As a run whose process died before it could report to Dagster."""
    assert project.graph is not None
    code = project.graph.nodes[DatasetId(name)].dataset.code_version
    held = claim(project.flow.ledger, name, day(1))
    publish(project.flow.ledger, held, made_by(code, {DatasetId(name): project.flow.manifest(held)}))


def test_versions_that_heal_reports_are_compared_in_whatever_order_they_are_declared(project: Project) -> None:
    project.build(final, tidy, raw)
    for name in ("raw", "tidy", "final"):
        publish_elsewhere(project, name)
    project.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'raw'")
    publish_elsewhere(project, "raw")

    heal(project)

    assert causes(project, "tidy", [day(1)]) == {day(1): [NEW_INPUT]}
    assert causes(project, "final", [day(1)]) == {day(1): []}


def test_a_version_that_is_reported_twice_is_no_new_version(project: Project) -> None:
    project.build(raw, tidy)
    project.launch("raw", day(1))
    project.launch("tidy", day(1))
    project.launch_as_sensor("raw", [day(1)])  # READY already
    assert len(project.materializations("raw")) == 2
    assert causes(project, "tidy", [day(1)]) == {day(1): []}
    make_again(project, "raw", day(1))
    project.launch_as_sensor("raw", [day(1)])
    project.launch_as_sensor("tidy", [day(1)])
    assert causes(project, "tidy", [day(1)]) == {day(1): [NEW_INPUT]}


def test_a_month_is_unsynced_when_one_of_its_days_has_a_new_version(project: Project) -> None:
    months = monthly("2024-01-01", "2024-01-01")
    january = daily("2024-01-01", "2024-01-31")

    days = sql_dataset("select :dataid as chunk", "days", partitions=january)
    month = sql_dataset("select chunk from days", "month", partitions=months, mapping={"days": within(months, january)})
    project.build(days, month)
    project.launch_range("days", day(1), day(31))
    assert project.launch("month", MONTH).success
    assert causes(project, "month", [MONTH]) == {MONTH: []}
    make_again(project, "days", day(17))
    assert causes(project, "month", [MONTH]) == {MONTH: [NEW_INPUT]}


def test_a_chunk_that_did_not_read_a_partition_is_never_unsynced_by_it(project: Project) -> None:
    keys = static("a", "b", "c")

    parts = sql_dataset("select :dataid as chunk", "parts", partitions=keys)
    some = sql_dataset(
        "select chunk from parts", "some", partitions=keys, mapping={"parts": ListedChunks(lambda _: ["a"])}
    )
    every = sql_dataset("select chunk from parts", "every", partitions=keys, mapping={"parts": ALL})
    project.build(parts, some, every)
    project.launch_range("parts", "a", "c")
    assert project.launch("some", "a").success
    assert project.launch("every", "a").success
    make_again(project, "parts", "b")
    assert causes(project, "some", ["a"]) == {"a": []}
    assert causes(project, "every", ["a"]) == {"a": [NEW_INPUT]}
