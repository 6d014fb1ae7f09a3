"""What the tests of scripts build with: real scripts, run as the engine runs them or by a real `odf`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Job, Policy
from opendataflow_dagster.scripts.order import Order, Report, ScriptResult
from opendataflow_dagster.scripts.process import Stop
from opendataflow_dagster.scripts.program import Limits
from opendataflow_dagster.scripts.runner import run_chunk, run_next
from tests.factories import Flow, job

PROJECT = Path(__file__).parents[1]
ODF = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()"]


def hear_signals() -> None:
    """A test run under nohup or in the background ignores these, and so would its children."""
    for one in (signal.SIGHUP, signal.SIGINT):
        signal.signal(one, signal.SIG_DFL)


@dataclass(kw_only=True)
class Shop:
    flow: Flow
    folder: Path
    outcomes: list[ScriptResult] = field(default_factory=list)
    shown: bytearray = field(default_factory=bytearray)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def register(self, *jobs: str | Job, policy: Policy | None = None, dataids: str = "1") -> None:
        """Jobs over DataSets without a location, as an upstream installation has them; their chunks are planned."""
        made = [one if isinstance(one, Job) else job(one, policy) for one in jobs]
        names = {one.datasetid for each in made for one in each.inputs} | {one for each in made for one in each.outputs}
        self.flow.register(*made, **{name: Dataset(datasetid=DatasetId(name)) for name in names})
        for each in made:
            if not each.inputs:
                self.flow.plan(each, dataids.split())

    def script(self, text: str, name: str = "load.sh") -> Path:
        path = self.folder / name
        path.write_text(text if text.startswith("#!") else f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return path

    def order(
        self,
        script: Path,
        *arguments: str,
        jobid: str | None = None,
        limits: Limits | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> Order:
        def show(data: bytes, _: bool, __: Callable[[], object]) -> None:
            self.shown += data
            if on_output is not None:
                on_output(data)

        return Order(
            jobid=JobId(jobid or script.stem),
            command=[str(script), *arguments],
            logs=self.home / "scripts",
            by="test",
            screen=lambda _: show,
            limits=limits or Limits(grace=0.3),
            stop=Stop(),
            tell=self.outcomes.append,
        )

    def run(self, script: Path, *arguments: str, everything: bool = False, parallel: int = 1) -> Report:
        return run_next(self.flow.ledger, self.order(script, *arguments), everything=everything, parallel=parallel)

    def run_chunk(self, script: Path, dataid: str, *, forced: bool = False) -> Report:
        return run_chunk(self.flow.ledger, self.order(script), dataid, forced=forced)

    def environment(self, **changes: str) -> dict[str, str]:
        ours = ("ODF_", "PASSKEY", "PYTHONDONTWRITEBYTECODE")  # with the last, each start compiles everything
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return {
            **kept,
            "PYTHONPATH": str(PROJECT),
            "ODF_DATABASE_URL": self.flow.url,
            "ODF_HOME": str(self.home),
            **changes,
        }

    def start(self, *words: str | Path, **changes: str) -> subprocess.Popen[str]:
        """`odf`, in a process of its own."""
        return subprocess.Popen(
            [*ODF, *map(str, words)],
            cwd=self.folder,
            env=self.environment(**changes),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_signals,
        )

    def odf(self, *words: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
        with self.start(*words, **changes) as process:
            out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)
