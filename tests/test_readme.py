"""The README is true: what it tells to type works, and what it shows is what one sees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
README = (PROJECT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def environment(url: str) -> dict[str, str]:
    """A database with the schema, as a person would name it."""
    return {**os.environ, "ODF_DATABASE_URL": url, "PYTHONPATH": str(PROJECT)}


def test_the_python_of_the_readme_runs_every_chunk_to_ready(environment: dict[str, str]) -> None:
    (program,) = blocks("python")
    look = (
        "\nfrom opendataflow_dagster.protocol.gate import gate\n"
        "with Ledger(database_url()) as ledger:\n"
        "    for verdict in gate(ledger, 'clean', ['2024-01-01', '2024-01-02']):\n"
        "        print(verdict.code, 'tidy' in str(verdict) and 'READY' in str(verdict))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program + look], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split("\n")[:2] == ["LOCKED True"] * 2, "both are READY, and a READY chunk is not taken again"


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
    targets = set(re.findall(r"^(\w+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake (\w+)", README))
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
            assert re.search(r"source has (\S+) flights on these days; the carriers' statistics count \1", ran.stdout)
    finally:
        subprocess.run([*odf, "db", "stop"], env=home, check=True, capture_output=True)
