"""The deadlines of a DataSet are the freshness policy of its asset, and Dagster judges by it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.definitions.freshness import CronFreshnessPolicy, TimeWindowFreshnessPolicy
from dagster._core.definitions.freshness_evaluator import FRESHNESS_EVALUATORS_BY_POLICY_TYPE
from dagster._core.loader import LoadingContextForTest
from dagster._core.test_utils import freeze_time

from opendataflow_dagster import daily, external_dataset, hourly, monthly, sql_dataset, weekly
from opendataflow_dagster.model.partitions import Partitions
from tests.dagster_project import Project

DAYS = daily("2024-01-01", "2024-01-10")


def policy(project: Project, name: str) -> dg.FreshnessPolicy | None:
    assert project.definitions is not None
    return project.definitions.resolve_asset_graph().get(dg.AssetKey(name)).freshness_policy


def state(project: Project, name: str, at: datetime) -> str:
    """As Dagster's freshness daemon finds it at this time."""
    assert project.definitions is not None
    node = project.definitions.resolve_asset_graph().get(dg.AssetKey(name))
    assert node.freshness_policy is not None
    evaluator = FRESHNESS_EVALUATORS_BY_POLICY_TYPE[type(node.freshness_policy)]()
    with freeze_time(at):
        found = asyncio.run(evaluator.evaluate_freshness(LoadingContextForTest(project.instance), node))
    return found.value


@pytest.mark.parametrize(
    ("partitions", "by", "cron", "span"),
    [
        (daily("2024-01-01"), "06:30", "30 6 * * *", timedelta(hours=6, minutes=30)),
        # Weeks that begin on Wednesday end on Wednesday.
        (weekly("2024-01-03"), "06:00", "0 6 * * 3", timedelta(hours=6)),
        (monthly("2024-01-01"), "23:59", "59 23 1 * *", timedelta(hours=23, minutes=59)),
        (hourly("2024-01-01-00:00"), "00:20", "20 * * * *", timedelta(minutes=20)),
        (hourly("2024-01-01-00:00"), "02:20", "20 * * * *", timedelta(hours=1)),
    ],
)
def test_the_time_by_which_a_chunk_is_expected_is_the_cron_policy_of_the_asset(
    project: Project, partitions: Partitions, by: str, cron: str, span: timedelta
) -> None:
    zone = "UTC" if cron.startswith("20 *") else "Europe/Berlin"
    made = sql_dataset("select 1 as id", "made", partitions=partitions, expected_by=by, timezone=zone)
    landing = external_dataset("landing", partitions=partitions, expected_by=by, timezone=zone)
    project.build(made, landing)
    for name in ("made", "landing"):
        found = policy(project, name)
        assert isinstance(found, CronFreshnessPolicy)
        assert (found.deadline_cron, found.lower_bound_delta, found.timezone) == (cron, span, zone)


def test_the_span_within_which_data_is_fresh_is_the_window_of_the_asset(project: Project) -> None:
    landing = external_dataset("landing", fresh_within=timedelta(hours=26))
    both = sql_dataset("select 1 as id", "both", partitions=DAYS, expected_by="06:00", fresh_within=timedelta(hours=26))
    project.build(landing, both, sql_dataset("select 1 as id", "neither", partitions=DAYS))
    found = policy(project, "landing")
    assert isinstance(found, TimeWindowFreshnessPolicy)
    assert found.fail_window.to_timedelta() == timedelta(hours=26)
    assert isinstance(policy(project, "both"), CronFreshnessPolicy)
    assert policy(project, "neither") is None


def test_dagster_finds_an_asset_late_from_its_deadline_in_the_time_zone_of_the_dataset(project: Project) -> None:
    made = sql_dataset("select :dataid as chunk", "made", partitions=DAYS, expected_by="06:00", timezone="Asia/Tokyo")
    project.build(made)
    assert project.launch("made", "2024-01-01").success
    (record,) = project.instance.fetch_materializations(dg.AssetKey("made"), limit=1).records
    made_at = datetime.fromtimestamp(record.timestamp, UTC)
    # 06:00 in Tokyo is 21:00 UTC. Between this deadline and its day, nothing was made.
    missed = (made_at + timedelta(days=2)).replace(hour=21, minute=1)
    assert state(project, "made", made_at) == "PASS"
    assert state(project, "made", missed) == "FAIL"
