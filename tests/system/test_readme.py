"""The README is true: its commands work, its pipeline runs, and the demo prints what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from tests.dagster_project import Project

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text()
ODF = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def status_bars(text: str) -> list[tuple[str, str]]:
    """Each DataSet in the tables of the demo, with the letters of its first six days."""
    rows = re.findall(r"^│ (\w+) +│ ([#FR.]+) ", text, re.MULTILINE)
    return [(name, days[:6]) for name, days in rows]


def own_home(tmp_path: Path) -> dict[str, str]:
    """An environment with an embedded Postgres of its own."""
    environment = {**os.environ, "ODF_HOME": str(tmp_path / ".odf"), "PYTHONPATH": str(PROJECT)}
    environment.pop("ODF_DATABASE_URL", None)
    return environment


def test_the_pipeline_of_the_readme_runs_in_dagster(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODF_HOME", str(tmp_path))  # its warehouse is not that of `make demo`
    (program,) = blocks("python")
    declared: dict[str, object] = {"__name__": "readme"}
    exec(compile(program, "README.md", "exec"), declared)  # noqa: S102 - it is our own page
    assert isinstance(declared["defs"], dg.Definitions)
    project.definitions = declared["defs"]
    assert project.launch("raw_flights", "2013-01-03").success
    assert project.launch("carrier_stats", "2013-01-03").success
    ((_, metadata),) = project.materializations("carrier_stats")
    assert metadata["dagster/row_count"] == 7
    assert project.flow.status("carrier_stats/2013-01-03") == "READY"


def test_the_commands_of_the_readme_work_on_the_embedded_server(tmp_path: Path) -> None:
    environment = own_home(tmp_path)
    (commands,) = [block for block in blocks("sh") if "odf db start" in block]
    lines = [line.split("#")[0].split() for line in commands.strip().splitlines()]
    assert all(line[0] == ".venv/bin/odf" for line in lines)
    try:
        for line in lines:
            ran = subprocess.run(
                [*ODF, *line[1:]], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, f"{line}: {ran.stderr}"
    finally:
        subprocess.run([*ODF, "db", "stop"], env=environment, check=True, capture_output=True)


def test_the_make_commands_of_the_readme_are_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test", "dev", "docs"} <= named <= targets


def test_the_demo_prints_what_the_readme_shows_and_can_run_again(tmp_path: Path) -> None:
    environment = own_home(tmp_path) | {"DAGSTER_HOME": str(tmp_path)}
    shutil.copy(PROJECT / "dagster_home" / "dagster.yaml", tmp_path)
    assert [letters for _, letters in status_bars(README)][2:4] == ["##F#R#", "##.#.#"]
    try:
        for _ in range(2):
            demo = [sys.executable, "-m", "examples.demo", "--days", "6"]
            ran = subprocess.run(demo, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr
            assert status_bars(ran.stdout) == status_bars(README)
            assert "UPDATE 3" in ran.stdout
            assert "RUNNING -> FAILED" in ran.stdout
            assert "FAILED -> RESUBMIT" in ran.stdout
            assert re.search(r"source has (\S+) flights on these days, and carrier_stats counts \1", ran.stdout)
    finally:
        subprocess.run([*ODF, "db", "stop"], env=environment, check=True, capture_output=True)
