"""The commands of docs/guides/trigger-runs.md do what the page says, typed as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg

from tests.dagster_project import Project
from tests.dagster_server import ROOT
from tests.effort import PATIENCE_SECONDS

PAGE = (ROOT / "docs" / "guides" / "trigger-runs.md").read_text()


def test_the_documented_commands_make_a_partition_and_a_range_and_queue_another(
    project: Project, tmp_path: Path
) -> None:
    (exports,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    launch, materialize, materialize_range = re.findall(r"`(dagster (?:job launch|asset materialize) .*?)`", PAGE)
    folder = tmp_path / "project"
    (folder / "dagster_home").mkdir(parents=True)
    shutil.copy(ROOT / "dagster_home" / "dagster.yaml", folder / "dagster_home")
    for name in ("definitions.py", "workspace.yaml", "assets", "resources", "sensors"):
        (folder / name).symlink_to(ROOT / name)
    inherited = {name: value for name, value in os.environ.items() if name not in ("DAGSTER_HOME", "ODF_DAGSTER_URL")}
    environment = inherited | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "ODF_DATABASE_URL": project.flow.url,
        "ODF_WAREHOUSE": str(project.flow.root),
    }

    done = subprocess.run(
        ["sh", "-eu", "-c", f"{exports}\n{materialize}\n{materialize_range}\n{launch}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    days = [f"2013-01-{number}" for number in (15, 16, 17, 18)]
    assert [project.flow.status(f"raw_flights/{day}") for day in days] == ["READY"] * 4
    assert sorted(dataid for dataid, _ in project.materializations("raw_flights")) == days
    assert project.instance.get_runs_count(dg.RunsFilter(tags={"dagster/asset_partition_range_start": days[1]})) == 1
    (queued,) = project.instance.get_runs(dg.RunsFilter(job_name="clean_flights"))
    assert queued.tags["dagster/partition"] == "2013-01-15"
    assert queued.status == dg.DagsterRunStatus.QUEUED
