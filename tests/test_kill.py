"""kill -9 of the run, of Spark's driver, of Postgres and of the daemon: everything heals by itself.

`make dev` is killed at, on its embedded Postgres; nothing but the dead `make dev` itself is started again by hand.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from opendataflow_dagster.ledger import chunks, schema
from opendataflow_dagster.ledger.chunks import Chunk
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.model.errors import OpenDataFlowError
from opendataflow_dagster.model.ids import ChunkKey, DataId, DatasetId, JobId
from opendataflow_dagster.model.job import Job
from opendataflow_dagster.model.manifest import Manifest
from opendataflow_dagster.orchestrator.storage import storage_url
from opendataflow_dagster.protocol.register import plan
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.warehouse.placement import misplaced
from tests.dagster_project import write_dagster_yaml
from tests.dagster_server import PATIENCE_SECONDS, ROOT, end_session, free_port

DAYS = [DataId(f"2024-01-{number:02}") for number in range(1, 11)]
KEYS = [ChunkKey(datasetid=DatasetId(name), dataid=day) for name in ("raw", "tidy") for day in DAYS]


@dataclass(kw_only=True)
class Dev:
    """`make dev` over a pipeline, and what it has started."""

    folder: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    port: int = field(default_factory=free_port)

    @property
    def hold(self) -> Path:
        return self.folder / "hold"

    def start(self) -> None:
        log = (self.folder / "dev.log").open("ab")
        command = [sys.executable, "-m", "opendataflow_dagster.orchestrator.dev", str(self.port)]
        self.process = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
        )

    def stop(self) -> None:
        if self.process is not None:
            end_session(self.process.pid)
            self.process.wait(30)

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        with Ledger(EmbeddedPostgres(self.folder / ".odf").start(), actor="test") as ledger:
            yield ledger

    def chunks(self) -> dict[ChunkKey, Chunk]:
        with self.ledger() as ledger, ledger.statement() as statement:
            found = chunks.find(statement, KEYS)
        return {ChunkKey(datasetid=one.datasetid, dataid=one.dataid): one for one in found}

    def current(self) -> dict[ChunkKey, Manifest]:
        with self.ledger() as ledger, ledger.statement() as statement:
            return {key: found for key in KEYS if (found := chunks.current_manifest(statement, key)) is not None}

    def is_ready(self) -> bool:
        found = self.chunks()
        return set(found) == set(KEYS) and {one.status for one in found.values()} == {"READY"}

    def is_running(self, day: DataId) -> bool:
        one = self.chunks().get(ChunkKey(datasetid=DatasetId("raw"), dataid=day))
        return one is not None and one.status == "RUNNING"

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
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
            time.sleep(0.5)

    def processes(self, word: str) -> list[int]:
        """Of this session, by a word of the command line; the newest last."""
        assert self.process is not None
        found: list[tuple[int, int]] = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and word in (folder / "cmdline").read_text():
                    found.append((int(fields[19]), int(folder.name)))
            except OSError:
                continue
        return [pid for _, pid in sorted(found)]

    def kill(self, victim: str) -> None:
        match victim:
            case "spark":
                pids = self.processes("org.apache.spark.deploy.SparkSubmit")
            case "run":
                drivers = self.processes("org.apache.spark.deploy.SparkSubmit")
                pids = [int(Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[1]) for one in drivers]
            case "daemon":
                pids = self.processes("dagster._daemon")
            case "postgres":
                pids = [int((self.folder / ".odf" / "postgres" / "postmaster.pid").read_text().split()[0])]
            case _:
                raise ValueError(victim)
        assert pids, f"no {victim} to kill"
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    folder = tmp_path_factory.mktemp("killed")
    embedded = EmbeddedPostgres(folder / ".odf")
    url = embedded.start()
    with Ledger(url) as ledger:
        schema.install(ledger)
        with ledger.statement() as statement:
            statement.run("make_dagster_schema")
    home = folder / "dagster_home"
    write_dagster_yaml(url, home)
    (folder / "hold").mkdir()
    (folder / "workspace.yaml").write_text(
        f"load_from:\n  - python_file: {ROOT / 'tests' / 'pipelines' / 'killed.py'}\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "ODF_DATABASE_URL")
    } | {
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(home),
        "ODF_HOME": str(folder / ".odf"),
        "ODF_DAGSTER_URL": storage_url(url),
        "ODF_TEST_HOLD": str(folder / "hold"),
        "ODF_SPARK_MASTER": "local[2]",
        "ODF_SPARK_CONF": '{"spark.sql.shuffle.partitions": "2"}',
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    running = Dev(folder=folder, environment=environment)
    running.start()
    try:
        yield running
    finally:
        running.stop()
        embedded.stop()


@pytest.fixture(scope="module")
def undisturbed(dev: Dev) -> dict[ChunkKey, Manifest]:
    """Every chunk once, with nobody killed."""

    def planned() -> bool:
        with dev.ledger() as ledger:
            try:
                plan(ledger, Job(jobid=JobId("raw"), outputs=(DatasetId("raw"),)), DAYS)
            except OpenDataFlowError:
                return False  # the code server has not registered it yet
        return True

    dev.wait_for("the registration", planned)
    dev.wait_for("every chunk READY", dev.is_ready)
    return dev.current()


@pytest.mark.parametrize(
    ("victim", "day"),
    [("run", DAYS[0]), ("spark", DAYS[4]), ("postgres", DAYS[2]), ("daemon", DAYS[4])],
    ids=lambda value: str(value),
)
def test_whoever_is_killed_every_chunk_heals_and_the_rows_are_those_of_an_undisturbed_run(
    dev: Dev, undisturbed: dict[ChunkKey, Manifest], victim: str, day: DataId
) -> None:
    before = dev.current()
    (dev.hold / day).touch()
    with dev.ledger() as ledger:
        resubmit(ledger, KEYS, by="test")
    dev.wait_for(f"work on {day}", lambda: dev.is_running(day))

    dev.kill(victim)
    (dev.hold / day).unlink()
    wrong = [said for one in before.values() if (said := misplaced(one.location, one.files))]
    assert not wrong, "the version before stays readable"
    if victim == "daemon":
        dev.stop()
        dev.start()

    dev.wait_for("every chunk READY again", dev.is_ready)
    after = dev.current()
    assert {key: after[key].version - before[key].version for key in KEYS} == dict.fromkeys(KEYS, 1), "once each"
    assert {key: (one.row_count, one.content_digest) for key, one in after.items()} == {
        key: (one.row_count, one.content_digest) for key, one in undisturbed.items()
    }
