"""A real web server and daemon for the whole run, and a browser."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.dagster.conftest import dagster_template as dagster_template
from tests.dagster.conftest import project as project
from tests.dagster_server import ROOT, Server, dagster_server
from tests.databases import temporary_database
from tests.effort import PATIENCE_SECONDS
from tests.spark.conftest import spark as spark


@pytest.fixture(scope="session")
def served(server: str, dagster_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A web server and a daemon for tests/pipelines/chain.py, shared by all tests of the process."""
    for url in temporary_database(server, dagster_template):
        pipeline = ROOT / "tests" / "pipelines" / "chain.py"
        with dagster_server(url, tmp_path_factory.mktemp("served"), pipeline) as running:
            yield running


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a browser, for whose pages a test waits patiently."""
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    return _program("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def pgbouncer() -> str:
    """The path of the connection pooler."""
    return _program("pgbouncer")


def _program(*names: str) -> str:
    """In CI a missing program is a failure, not a skip."""
    installed = subprocess.run([ROOT / "bin" / "program", *names], capture_output=True, text=True, check=False)
    if installed.returncode == 77:
        pytest.skip(installed.stderr.strip())
    assert installed.returncode == 0, f"no {names[0]}: {installed.stderr}"
    return installed.stdout.strip()
