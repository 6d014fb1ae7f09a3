"""A real web server, daemon and code server, for what only they can show. Stopped by pid."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from tests.dagster_project import Project, project_on
from tests.effort import PATIENCE_SECONDS
from tests.pipelines.hold import VARIABLE, Hold
from tests.scripts import hear_signals

ROOT = Path(__file__).parents[1]


@dataclass(kw_only=True)
class Server:
    address: str
    project: Project
    #: A file with the name of a day makes that day of raw fail.
    bad: Path
    #: Where the work on a day of raw waits.
    hold: Hold
    environment: dict[str, str]
    log: Path

    def graphql(self, query: str, **variables: object) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        asked = urllib.request.Request(  # noqa: S310 - our own server
            f"{self.address}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
            found = json.load(answer)
        assert "errors" not in found, found
        return found["data"]

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dagster", *arguments]
        return subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def backfill(self, assets: list[str], dataids: list[str]) -> str:
        """As the UI launches it."""
        answer = self.graphql(
            """mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
                 __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }""",
            params={"assetSelection": [{"path": [asset]} for asset in assets], "partitionNames": dataids},
        )["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return str(answer["backfillId"])

    def launch(self, job: str, dataid: str) -> str:
        """As the documentation says it; the id of the run."""
        tags = f'{{"dagster/partition": "{dataid}"}}'
        done = self.cli("job", "launch", "-f", "tests/pipelines/chain.py", "-j", job, "--tags", tags)
        assert done.returncode == 0, done.stdout + done.stderr
        (run,) = self.project.instance.get_runs(
            dg.RunsFilter(job_name=job, tags={"dagster/partition": dataid}), limit=1
        )
        return run.run_id

    def wait_for_run(self, run_id: str) -> dg.DagsterRun:
        self.wait_for(f"the end of run {run_id}", lambda: self._run(run_id).is_finished)
        return self._run(run_id)

    def _run(self, run_id: str) -> dg.DagsterRun:
        found = self.project.instance.get_run_by_id(run_id)
        assert found is not None
        return found

    def wait_for_backfill(self, backfill_id: str) -> None:
        def over() -> bool:
            found = self.project.instance.get_backfill(backfill_id)
            return found is not None and found.status.value not in ("REQUESTED", "CANCELING", "FAILING")

        self.wait_for(f"the end of backfill {backfill_id}", over)

    def wait_for(self, what: str, condition: Callable[[], object]) -> None:
        """The daemon works in loops of seconds; there is nothing to be woken by."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > until:
                raise AssertionError(f"{what} did not happen in {PATIENCE_SECONDS} s\n{self.log.read_text()[-6000:]}")
            time.sleep(0.5)


@contextmanager
def dagster_server(url: str, folder: Path, pipeline: Path) -> Iterator[Server]:
    port, home, bad, log = free_port(), folder / "dagster_home", folder / "bad", folder / "dagster.log"
    bad.mkdir()
    hold = Hold(folder / "hold")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(home),
        "ODF_DATABASE_URL": url,
        "ODF_WAREHOUSE": str(folder / "warehouse"),
        "ODF_SPARK_MASTER": "local[2]",
        "ODF_SPARK_CONF": '{"spark.sql.shuffle.partitions": "2"}',
        "ODF_TEST_BAD": str(bad),
        VARIABLE: str(hold.folder),
        # Each run starts a Java; a short life is not worth optimising for.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    with project_on(url, folder, home) as project, log.open("wb") as output:
        command = [sys.executable, "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", str(port), "-f", str(pipeline)]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=hear_signals,
        )
        server = Server(
            address=f"http://127.0.0.1:{port}",
            project=project,
            bad=bad,
            hold=hold,
            environment=environment,
            log=log,
        )
        try:
            server.wait_for("the web server's answer", lambda: process.poll() is None and _answers(server))
            yield server
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE_SECONDS)
            finally:
                # Whatever it started is in its session, and ends with it.
                end_session(process.pid)


def _answers(server: Server) -> bool:
    try:
        loaded = server.graphql("{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }")
        return bool(loaded["repositoriesOrError"].get("nodes"))
    except (OSError, urllib.error.URLError):
        return False


def end_session(leader: int) -> None:
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                os.kill(int(status.parent.name), signal.SIGKILL)
        except (OSError, IndexError):
            continue


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
