"""`odf dev` over a pipeline, on an embedded Postgres of its own, for tests that kill what it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from opendataflow_dagster.engine.connections import dagster_storage_url
from opendataflow_dagster.ledger import chunks, schema
from opendataflow_dagster.ledger.chunks import Chunk
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.model.errors import OpenDataFlowError
from opendataflow_dagster.model.ids import ChunkKey, DataId
from opendataflow_dagster.model.manifest import Manifest
from tests.dagster_project import write_dagster_yaml
from tests.dagster_server import ROOT, end_session, free_port
from tests.effort import PATIENCE_SECONDS
from tests.pipelines import hold

SPARK = "org.apache.spark.deploy.SparkSubmit"


@dataclass(kw_only=True)
class Dev:
    folder: Path
    url: str
    pipeline: Path
    environment: dict[str, str]
    keys: Sequence[ChunkKey]
    sessions: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def hold(self) -> hold.Hold:
        return hold.Hold(self.folder / "hold")

    def start(self) -> None:
        """As `odf dev` does it."""
        EmbeddedPostgres(self.folder / ".odf").start()
        (self.folder / "workspace.yaml").write_text(f"load_from:\n  - python_file: {self.pipeline}\n")
        self._start("opendataflow_dagster.orchestrator.dev", str(free_port()))

    def start_code_server(self) -> None:
        """As a service of its own, for a daemon that is one, too: on a server they do not die together."""
        port = str(free_port())
        (self.folder / "workspace.yaml").write_text(
            f"load_from:\n  - grpc_server:\n      host: 127.0.0.1\n      port: {port}\n      location_name: killed.py\n"
        )
        self._start("dagster", "api", "grpc", "-f", str(self.pipeline), "-h", "127.0.0.1", "-p", port)

    def start_daemon(self) -> subprocess.Popen[bytes]:
        return self._start("dagster._daemon", "run", "-w", "workspace.yaml")

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "dev.log").open("ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.sessions.append(started)
        return started

    def stop(self) -> None:
        """Everything at once, with -9."""
        while self.sessions:
            leader = self.sessions.pop()
            end_session(leader.pid)
            leader.wait(PATIENCE_SECONDS)

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """It does not start a Postgres that was killed: that is for those who are tested."""
        with Ledger(self.url, actor="test") as ledger:
            yield ledger

    def chunks(self) -> dict[ChunkKey, Chunk]:
        with self.ledger() as ledger, ledger.statement() as statement:
            found = chunks.find(statement, self.keys)
        return {ChunkKey(datasetid=row.datasetid, dataid=row.dataid): row for row in found}

    def current(self) -> dict[ChunkKey, Manifest]:
        with self.ledger() as ledger, ledger.statement() as statement:
            return {
                key: manifest for key in self.keys if (manifest := chunks.current_manifest(statement, key)) is not None
            }

    def is_ready(self, datasetid: str | None = None) -> bool:
        found = self.chunks()
        wanted = {chunk_key for chunk_key in self.keys if datasetid in (None, chunk_key.datasetid)}
        return {key for key, chunk in found.items() if chunk.status == "READY"} >= wanted

    def known_to_dagster(self) -> dict[ChunkKey, object]:
        """The newest version of each chunk that Dagster was told of."""
        found: dict[ChunkKey, object] = {}
        with dg.DagsterInstance.from_config(str(self.folder / "dagster_home")) as instance:
            for datasetid in {chunk_key.datasetid for chunk_key in self.keys}:
                for record in instance.fetch_materializations(dg.AssetKey(datasetid), limit=1000).records:
                    key = ChunkKey(datasetid=datasetid, dataid=DataId(record.partition_key or ""))
                    told = record.asset_materialization
                    found.setdefault(key, told.metadata["version"].value if told else None)
        return found

    def is_at_rest(self) -> bool:
        """Dagster takes no run for one that works."""
        with dg.DagsterInstance.from_config(str(self.folder / "dagster_home")) as instance:
            return not instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]), limit=1)

    def wait_for(self, what: str, condition: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                if condition():
                    return
            except OpenDataFlowError as error:
                if not error.retryable:
                    raise
            if time.monotonic() > until:
                said = (self.folder / "dev.log").read_text()[-5000:]
                raise AssertionError(f"{what} did not happen in {PATIENCE_SECONDS} s\n{self.chunks()}\n{said}")
            time.sleep(0.2)

    def kill(self, victim: str) -> None:
        match victim:
            case "spark":
                pids = self._processes(SPARK)
            case "run":
                pids = [_parent(process) for process in self._processes(SPARK)]
            case "postgres":
                pids = [self._postmaster()]
            case "everything":
                self.stop()
                pids = [self._postmaster()]
            case _:
                raise ValueError(victim)
        assert pids, f"no {victim} to kill"
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def _postmaster(self) -> int:
        return int((self.folder / ".odf" / "postgres" / "postmaster.pid").read_text().split()[0])

    def _processes(self, word: str) -> list[int]:
        """Of these sessions, by a word of the command line."""
        leaders = {session.pid for session in self.sessions}
        found: list[int] = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
                if session in leaders and word in (folder / "cmdline").read_text():
                    found.append(int(folder.name))
            except OSError:
                continue
        return found


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def dagster_dev(folder: Path, pipeline: Path, keys: Sequence[ChunkKey]) -> Iterator[Dev]:
    embedded = EmbeddedPostgres(folder / ".odf")
    url = embedded.start()
    with Ledger(url) as ledger:
        schema.install(ledger)
        with ledger.statement() as statement:
            statement.run("make_dagster_schema")
    write_dagster_yaml(url, folder / "dagster_home")
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "ODF_DATABASE_URL")
    }
    environment = inherited | {
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(folder / "dagster_home"),
        "ODF_HOME": str(folder / ".odf"),
        "ODF_DAGSTER_URL": dagster_storage_url(url),
        hold.VARIABLE: str(folder / "hold"),
        "ODF_SPARK_MASTER": "local[2]",
        "ODF_SPARK_CONF": '{"spark.sql.shuffle.partitions": "2"}',
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    running = Dev(folder=folder, url=url, pipeline=pipeline, environment=environment, keys=keys)
    running.start()
    try:
        yield running
    finally:
        running.stop()
        embedded.stop()
