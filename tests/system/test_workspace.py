"""The project's definitions load through its workspace files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from opendataflow_dagster.engine.connections import dagster_storage_url

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, without what a surrounding `make` says to its own children."""
    kept = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept | changes


@pytest.mark.parametrize(
    ("dagster_yaml", "workspace"),
    [
        ("dagster_home/dagster.yaml", "workspace.yaml"),
        ("examples/server/dagster.yaml", "examples/server/workspace.yaml"),
    ],
    ids=["embedded", "server"],
)
def test_the_definitions_load_through_the_workspace_and_are_registered(
    tmp_path: Path, url: str, dagster_yaml: str, workspace: str
) -> None:
    shutil.copy(ROOT / dagster_yaml, tmp_path / "dagster.yaml")
    with psycopg.connect(url) as connection:
        connection.execute("create schema dagster")

    result = run(
        *(sys.executable, "-m", "dagster", "definitions", "validate", "-w", workspace),
        env=environment(
            DAGSTER_HOME=str(tmp_path),
            ODF_DATABASE_URL=url,
            ODF_DAGSTER_URL=dagster_storage_url(url),
            PYTHONPATH=str(ROOT),
        ),
    )

    assert result.returncode == 0, result.stdout + result.stderr
    with psycopg.connect(url) as connection:
        found = connection.execute("select datasetid from dataflow.job where itemtype = 'OUT' order by 1").fetchall()
    assert [row[0] for row in found] == ["carrier_stats", "clean_flights", "raw_flights", "raw_weather"]
