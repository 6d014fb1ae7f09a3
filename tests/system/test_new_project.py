"""A project made by `odf init` works as it is: one command runs it, and its tests pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.dagster_server import ROOT, end_session, free_port
from tests.effort import PATIENCE_SECONDS

ODF = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()"]
DAYS = ["2024-01-01", "2024-01-02"]


@pytest.fixture(scope="module")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "sales"
    subprocess.run([*ODF, "init", str(folder)], env=environment(), check=True, capture_output=True)
    return folder


@pytest.fixture
def odf_dev(new_project: Path) -> Iterator[str]:
    """The address of the UI, while `odf dev` runs."""
    port = free_port()
    log = (new_project / "dev.log").open("wb")
    dev = subprocess.Popen(
        [*ODF, "dev", "--port", str(port)],
        cwd=new_project,
        env=environment(),
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        end_session(dev.pid)
        dev.wait(PATIENCE_SECONDS)
        log.close()
        odf(new_project, "db", "stop")


def environment() -> dict[str, str]:
    """Without what this machine has set up: as on a new one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ODF_", "DAGSTER_"))}
    small = {"ODF_SPARK_MASTER": "local[2]", "ODF_SPARK_CONF": '{"spark.sql.shuffle.partitions": "2"}'}
    return kept | small | {"PYTHONPATH": str(ROOT)}


def odf(folder: Path, *words: str) -> str:
    return subprocess.run(
        [*ODF, *words], cwd=folder, env=environment(), capture_output=True, text=True, check=True
    ).stdout


def test_one_command_runs_a_new_project_and_the_consumer_follows_by_itself(new_project: Path, odf_dev: str) -> None:
    def graphql(query: str, **variables: object) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        asked = urllib.request.Request(f"{odf_dev}/graphql", body, {"Content-Type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - our own server
            return json.load(answer)["data"]

    def is_loaded() -> bool:
        try:
            return any(
                node["assetKey"]["path"] == ["orders"] for node in graphql("{assetNodes{assetKey{path}}}")["assetNodes"]
            )
        except OSError:
            return False

    wait_for(is_loaded, new_project)
    launched = graphql(
        "mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) { __typename } }",
        params={"assetSelection": [{"path": ["orders"]}], "partitionNames": DAYS},
    )
    assert launched == {"launchPartitionBackfill": {"__typename": "LaunchBackfillSuccess"}}

    def is_ready() -> bool:
        datasets = json.loads(odf(new_project, "status", "--json"))["datasets"]
        ready = {dataset["datasetid"]: dataset["counts"].get("READY", 0) for dataset in datasets}
        return ready == {"orders": len(DAYS), "daily_totals": len(DAYS)}

    wait_for(is_ready, new_project)
    # Dagster's tables are in the ledger's Postgres, not in a temporary folder that takes its history along.
    assert not list(new_project.glob(".tmp_dagster_home_*"))
    assert graphql("{runsOrError{... on Runs{count}}}")["runsOrError"]["count"] >= 2


def wait_for(condition: Callable[[], bool], project: Path) -> None:
    until = monotonic() + PATIENCE_SECONDS
    while not condition():
        assert monotonic() < until, (project / "dev.log").read_text()[-5_000:]
        sleep(0.5)


def test_the_tests_of_a_new_project_pass(new_project: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=new_project,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 passed" in ran.stdout


def test_a_new_project_has_the_dagster_settings_of_this_one(new_project: Path) -> None:
    assert (new_project / "dagster_home" / "dagster.yaml").read_text() == (
        ROOT / "dagster_home" / "dagster.yaml"
    ).read_text()
