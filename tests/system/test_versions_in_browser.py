"""Dagster's UI shows which partitions other code made, which inputs have a newer version, and what is late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from playwright.sync_api import Page, TimeoutError, expect, sync_playwright

from opendataflow_dagster import LedgerResource, daily, sql_dataset
from opendataflow_dagster.engine.dataset_graph import build_graph
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import made_by
from opendataflow_dagster.orchestrator.heal_sensor import heal_sensor
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from tests.dagster_server import Server, dagster_server
from tests.databases import temporary_database
from tests.effort import PATIENCE_SECONDS

PATIENCE = PATIENCE_SECONDS * 1000
FIRST, SECOND = "2024-01-01", "2024-01-02"
PIPELINE = """\
from datetime import timedelta

from opendataflow_dagster import build_definitions, daily, sql_dataset

DAYS = daily("2024-01-01", "2024-01-05")
raw = sql_dataset(
    "select :dataid as chunk", "raw", partitions=DAYS, code_version="1", fresh_within=timedelta(hours=26)
)
tidy = sql_dataset(
    "select chunk from raw", "tidy", partitions=DAYS, code_version="CODE", expected_by="06:00", timezone="Europe/Berlin"
)
defs = build_definitions([raw, tidy])
"""


@dataclass(frozen=True, kw_only=True)
class Versions:
    server: Server
    pipeline: Path

    def load_again(self, code: str) -> None:
        """As with the button of the UI."""
        self.pipeline.write_text(PIPELINE.replace("CODE", code))
        loaded = self.server.graphql("mutation { reloadWorkspace { __typename } }")["reloadWorkspace"]
        assert loaded["__typename"] == "Workspace"

    def causes(self, name: str, dataid: str) -> list[str]:
        """Why the UI shows it as unsynced."""
        asked = "query ($key: AssetKeyInput!, $dataid: String!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {"
        asked += " staleCauses(partition: $dataid) { reason } } } }"
        found = self.server.graphql(asked, key={"path": [name]}, dataid=dataid)["assetNodeOrError"]
        return [cause["reason"] for cause in found["staleCauses"]]

    def make(self, name: str, dataid: str) -> None:
        flow = self.server.project.flow
        held = claim(flow.ledger, name, dataid)
        publish(flow.ledger, held, made_by("1", {DatasetId(name): flow.manifest(held)}))

    def report(self) -> None:
        """As the daemon does, half a minute later."""
        days, ledger = daily("2024-01-01", "2024-01-05"), LedgerResource(patience_seconds=1)
        declared = [
            sql_dataset("select :dataid as chunk", "raw", partitions=days, code_version="1"),
            sql_dataset("select chunk from raw", "tidy", partitions=days, code_version="1"),
        ]
        graph = build_graph(declared, str(self.server.project.flow.root))
        context = dg.build_sensor_context(instance=self.server.project.instance, resources={"ledger": ledger})
        heal_sensor(graph, grace=timedelta(0)).evaluate_tick(context)


@pytest.fixture(scope="module")
def versions(server: str, dagster_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Versions]:
    """Two days of raw and tidy; then a new version of the first day of raw."""
    folder = tmp_path_factory.mktemp("versions")
    pipeline = folder / "pipeline.py"
    pipeline.write_text(PIPELINE.replace("CODE", "1"))
    with pytest.MonkeyPatch.context() as patch:
        for url in temporary_database(server, dagster_template):
            patch.setenv("ODF_DATABASE_URL", url)
            with dagster_server(url, folder, pipeline) as running:
                made = Versions(server=running, pipeline=pipeline)
                for name in ("raw", "tidy"):
                    for dataid in (FIRST, SECOND):
                        made.make(name, dataid)
                made.report()
                running.project.flow.type(
                    "update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'raw' and dataid = %s", FIRST
                )
                made.make("raw", FIRST)
                made.report()
                yield made


@pytest.fixture(scope="module")
def page(versions: Versions, chromium: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        # Root's browser has no sandbox; it sees only our own server.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1100})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def open_partition(page: Page, versions: Versions, name: str, dataid: str) -> None:
    page.goto(f"{versions.server.address}/assets/{name}?view=partitions&partition={dataid}")
    expect(page.get_by_text("Materialized").first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("location", exact=True).first).to_be_visible(timeout=PATIENCE)


def wait_until_shown(page: Page, versions: Versions, path: str, *texts: str) -> None:
    """A page asks for some of its texts once, perhaps before the web server knows them; a person would press F5."""

    def are_shown() -> bool:
        page.goto(f"{versions.server.address}/assets/{path}")
        try:
            for text in texts:
                page.get_by_text(text).first.wait_for(timeout=15_000)
        except TimeoutError:
            return False
        return True

    versions.server.wait_for(f"{', '.join(texts)} on the page {path}", are_shown)


def test_a_partition_whose_input_has_a_newer_version_is_shown_as_unsynced(page: Page, versions: Versions) -> None:
    wait_until_shown(page, versions, f"tidy?view=partitions&partition={FIRST}", "Unsynced")
    assert versions.causes("tidy", FIRST) == ["has a new data version"]
    open_partition(page, versions, "tidy", SECOND)
    expect(page.get_by_text("Unsynced")).to_have_count(0)


def test_changing_the_code_of_a_dataset_shows_its_partitions_as_unsynced(page: Page, versions: Versions) -> None:
    versions.load_again("2")
    wait_until_shown(page, versions, f"tidy?view=partitions&partition={SECOND}", "Unsynced")
    assert versions.causes("tidy", SECOND) == ["has a new code version"]
    open_partition(page, versions, "raw", SECOND)
    expect(page.get_by_text("Unsynced")).to_have_count(0)


def test_a_deadline_is_shown_as_the_freshness_policy_of_the_asset(page: Page, versions: Versions) -> None:
    # The daemon judges it within half a minute.
    wait_until_shown(page, versions, "tidy?view=overview", "Passing", "Deadline: At 06:00 AM")
