"""The README is true: what it tells to type works, and what it shows is what one sees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg

from tests.dagster_project import Project

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_pipeline_of_the_readme_is_made_by_dagster(project: Project) -> None:
    (program,) = blocks("python")
    declared: dict[str, object] = {"__name__": "readme"}
    exec(compile(program, "README.md", "exec"), declared)  # noqa: S102 - it is our own page
    assert isinstance(declared["defs"], dg.Definitions)
    project.definitions = declared["defs"]
    assert project.launch("orders", "2024-01-01").success
    assert project.launch("customer_totals", "2024-01-01").success
    ((_, told),) = project.materializations("customer_totals")
    assert told["dagster/row_count"] == 7
    assert project.flow.status("customer_totals/2024-01-01") == "READY"


def test_the_commands_of_the_readme_work_on_the_embedded_server(tmp_path: Path) -> None:
    home = {**os.environ, "ODF_HOME": str(tmp_path / ".odf"), "PYTHONPATH": str(PROJECT)}
    home.pop("ODF_DATABASE_URL", None)
    (commands,) = [one for one in blocks("sh") if "odf db start" in one]
    odf = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()"]
    lines = [line.split("#")[0].split() for line in commands.strip().splitlines()]
    assert all(line[0] == ".venv/bin/odf" for line in lines)
    try:
        for line in lines:
            ran = subprocess.run([*odf, *line[1:]], env=home, capture_output=True, text=True)
            assert ran.returncode == 0, f"{line}: {ran.stderr}"
    finally:
        subprocess.run([*odf, "db", "stop"], env=home, check=True, capture_output=True)


def test_the_make_commands_of_the_readme_are_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_the_demo_tells_its_story_and_can_be_told_again(tmp_path: Path) -> None:
    home = {**os.environ, "ODF_HOME": str(tmp_path / ".odf"), "DAGSTER_HOME": str(tmp_path), "PYTHONPATH": str(PROJECT)}
    home.pop("ODF_DATABASE_URL", None)
    shutil.copy(PROJECT / "dagster_home" / "dagster.yaml", tmp_path)
    odf = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()"]
    try:
        for _ in range(2):
            demo = [sys.executable, "-m", "examples.demo", "--days", "6"]
            ran = subprocess.run(demo, env=home, cwd=PROJECT, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
            rows = re.findall(r"^│ (\w+) +│ ([#FR.]{6}) ", ran.stdout, re.MULTILINE)
            assert rows == [
                *(("raw_flights", "######"), ("raw_weather", "######")),
                *(("clean_flights", "##F#R#"), ("carrier_stats", "##.#.#")),
                *((name, "######") for name in ("raw_flights", "raw_weather", "clean_flights", "carrier_stats")),
            ]
            for line in re.findall(r"^  (READY|RIGHT|PLACED|VALID) +(yes .*)$", README, re.MULTILINE):
                assert f"{line[0]:7}{line[1]}" in ran.stdout
            assert "UPDATE 3" in ran.stdout
            assert "RUNNING -> FAILED" in ran.stdout
            assert "FAILED -> RESUBMIT" in ran.stdout
            assert re.search(r"source has (\S+) flights on these days, and carrier_stats counts \1", ran.stdout)
    finally:
        subprocess.run([*odf, "db", "stop"], env=home, check=True, capture_output=True)
