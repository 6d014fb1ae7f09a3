"""Spark sessions by settings alone: local, Connect and standalone cluster. Each survives killed processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.warehouse.session import SparkSettings, beside, session
from tests.effort import PATIENCE_SECONDS
from tests.warehouse import staged
from tests.warehouse_children import interrupted_sql

_SPARK_HOME = Path(pyspark.__file__).parent
# The JVMs are too short-lived for the second compiler to pay off.
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Processes:
    """Started here, and ended by pid."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{name}.log").open("wb")
        env = {
            **os.environ,
            "SPARK_HOME": str(_SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "512m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {_SHORT_LIFE}",
            "SPARK_WORKER_DIR": str(self._folder / "work"),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]),
            **environment,
        }
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self._started.append(process)
        return process

    def child(self, function: str, root: Path, **environment: str) -> subprocess.Popen[bytes]:
        return self.start(
            function, sys.executable, "-m", "tests.warehouse_children", function, str(root), **environment
        )

    def answer(self, function: str, child: subprocess.Popen[bytes]) -> dict[str, Any]:
        child.wait(PATIENCE_SECONDS)
        log = (self._folder / f"{function}.log").read_text(errors="replace")
        assert child.returncode == 0, log[-3000:]
        found: dict[str, Any] = json.loads(log.strip().splitlines()[-1])
        return found

    def end(self) -> None:
        for process in reversed(self._started):
            process.kill()
            process.wait()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    yield started
    started.end()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(ready: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        assert time.monotonic() < until, f"waited in vain: {what}"
        time.sleep(0.05)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def connect_server(processes: Processes) -> tuple[subprocess.Popen[bytes], str]:
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = str(_SPARK_HOME / "bin" / "spark-submit")
    server = processes.start("server", submit, "--class", main, "--master", "local[2]", *conf)
    wait_until(lambda: answers(port) or server.poll() is not None, "the Connect server")
    assert server.poll() is None
    return server, f"sc://127.0.0.1:{port}"


def test_spark_connect_supports_everything_a_local_session_does(
    processes: Processes, spark: SparkSession, tmp_path: Path
) -> None:
    server, remote = connect_server(processes)
    child = processes.child("through_connect", tmp_path, ODF_SPARK_REMOTE=remote)
    found = processes.answer("through_connect", child)
    assert found["session"] == "pyspark.sql.connect.session"
    assert found["same"] is True
    assert found["zone"] == "UTC"
    here = staged(spark.range(10).selectExpr("id", "id % 3 as k", "map('a', id) as m"), tmp_path / "here")
    assert (found["rows"], found["digest"]) == (10, here.content_digest)
    assert found["read"] == [[n, n % 3] for n in range(10)]
    assert (found["empty"], found["none"]) == ([0, 0], 0)
    assert found["table"] == [[10, "d:1"]]
    assert found["diff"] == [[2, 2, 0, []], [1, 1, 1, [[{"id": "5"}, {"m": "[[a, 0]]"}]]]]
    assert found["checks"] == {
        "unique(id)": [True, "10 rows, no repeated key"],
        "unique(k)": [False, "10 of 10 rows fail unique(k): 3 repeated keys, e.g. 0"],
        "between(id, 0, 8)": [False, "1 of 10 rows fails between(id, 0, 8), e.g. 9"],
        "not_null(k)": [True, "no nulls in 10 rows"],
    }
    # SQL runs in a session of its own, with our settings, and stops with its run.
    assert found["sql"] == [[0, "d:1", "UTC"], [1, "d:1", "UTC"]]
    assert "CANCELED" in found["interrupted"]
    divided, twice, unknown = found["errors"]
    assert divided.startswith("StageFailed: chunk d (claim ")
    assert "DIVIDE_BY_ZERO" in divided
    assert twice.startswith("IncompatibleSchema: chunk d (claim ")
    assert "check not_null(nosuch) needs column nosuch" in unknown
    # A killed server is detected at once.
    doomed = processes.child("without_its_server", tmp_path, ODF_SPARK_REMOTE=remote)
    wait_until(lambda: (tmp_path / "connected").exists(), "the second client")
    server.kill()
    server.wait()
    (tmp_path / "killed").touch()
    left = processes.answer("without_its_server", doomed)
    assert left["alive"] is False
    assert left["error"].startswith(f"SparkUnavailable: no Spark session at {remote}")


def test_a_killed_driver_is_replaced(processes: Processes, tmp_path: Path) -> None:
    conf = json.dumps({"spark.driver.extraJavaOptions": _SHORT_LIFE})
    child = processes.child("survives_its_driver", tmp_path, ODF_SPARK_MASTER="local[2]", ODF_SPARK_CONF=conf)
    found = processes.answer("survives_its_driver", child)
    assert found["error"].startswith("SparkUnavailable: chunk cut off (claim 2)")
    assert "lost the Spark session" in found["error"]
    assert found["retryable"] is True
    assert (found["new"], found["rows"], found["same"]) == (True, [[0], [1], [2]], True)
    assert found["after stop"] == 5


def test_killing_a_worker_in_the_middle_of_a_chunk_loses_nothing(
    processes: Processes, spark: SparkSession, tmp_path: Path
) -> None:
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    launcher = str(_SPARK_HOME / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    listen = ("--host", "127.0.0.1", "--webui-port", "0")
    processes.start("master", launcher, f"{deploy}.master.Master", *listen, "--port", str(port))
    wait_until(lambda: answers(port), "the master")
    worker = (launcher, f"{deploy}.worker.Worker", *listen, "--cores", "1", "--memory", "600m", master)
    first, _ = (processes.start(f"worker{number}", *worker) for number in (1, 2))
    conf = {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": _SHORT_LIFE,
        "spark.driver.extraJavaOptions": _SHORT_LIFE,
        "spark.executor.cores": 1,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": False,
        "spark.sql.shuffle.partitions": 2,
    }
    child = processes.child("on_a_cluster", tmp_path, ODF_SPARK_MASTER=master, ODF_SPARK_CONF=json.dumps(conf))
    marks = tmp_path / "marks"

    def begun() -> list[int]:
        return [int(mark.name) for mark in marks.iterdir()] if marks.is_dir() else []

    wait_until(lambda: len(begun()) >= 2 or child.poll() is not None, "a task on each worker")
    both = begun()
    assert len(both) >= 2
    assert all(lives(pid) for pid in both)
    first.send_signal(signal.SIGKILL)
    wait_until(lambda: not all(lives(pid) for pid in both), "the task of the killed worker is gone")
    assert not (tmp_path / "go").exists()
    (tmp_path / "go").touch()
    found = processes.answer("on_a_cluster", child)
    whole = spark.range(0, 1000, numPartitions=3).selectExpr("id", "id * 2 as twice")
    assert (found["rows"], found["digest"]) == (1000, staged(whole, tmp_path / "here").content_digest)
    assert found["sums"] == [[1000, 1000, sum(range(1000)), 2 * sum(range(1000))]]
    assert found["check"] == [True, "1,000 rows, no repeated key"]
    assert found["left"] == found["recorded"]
    assert (found["files"], found["temporary"]) == (6, False)


def test_settings_come_from_the_environment() -> None:
    assert SparkSettings.from_environment({}) == SparkSettings(master="local[*]")
    given = {"ODF_SPARK_MASTER": "spark://host:7077", "ODF_SPARK_CONF": '{"spark.executor.cores": 2, "spark.x": true}'}
    found = SparkSettings.from_environment(given)
    assert (found.master, dict(found.conf)) == ("spark://host:7077", {"spark.executor.cores": "2", "spark.x": "true"})
    assert SparkSettings.from_environment({"ODF_SPARK_REMOTE": "sc://host"}).remote == "sc://host"
    # Our settings are defaults, given ones win, and a cluster does not bind to loopback.
    assert SparkSettings(conf={"spark.ui.enabled": "true"}).all_conf["spark.ui.enabled"] == "true"
    assert "spark.driver.host" in SparkSettings().all_conf
    assert "spark.driver.host" not in SparkSettings(master="yarn").all_conf


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"ODF_SPARK_MASTER": "yarn", "ODF_SPARK_REMOTE": "sc://h"}, "are both set"),
        ({"ODF_SPARK_REMOTE": "http://h"}, "'http://h' is not the URL of a Spark Connect server"),
        ({"ODF_SPARK_CONF": "spark.x=1"}, "ODF_SPARK_CONF is not a JSON object"),
        ({"ODF_SPARK_CONF": '{"spark.x": {}}'}, "ODF_SPARK_CONF is not a JSON object"),
        ({"ODF_SPARK_CONF": '{"spark.hadoop.fs.s3a.secret.key": "x"}'}, "visible on a command line"),
    ],
)
def test_invalid_settings_are_refused_with_the_reason(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SparkSettings.from_environment(environment)


def test_interrupting_the_tag_of_a_run_stops_its_sql(spark: SparkSession, tmp_path: Path) -> None:
    assert "cancelled" in interrupted_sql(spark, tmp_path / "interrupted")


def test_a_thread_reuses_one_extra_session_with_its_own_views(spark: SparkSession) -> None:
    spark.range(1).createOrReplaceTempView("shared")

    own = beside(spark)

    assert own is beside(spark)
    assert own is not spark
    assert not own.catalog.tableExists("shared")
    assert own.conf.get("spark.sql.session.timeZone") == "UTC"
    with ThreadPoolExecutor() as pool:
        assert pool.submit(beside, spark).result() is not own


def test_a_process_has_one_session(spark: SparkSession) -> None:
    assert session() is spark
    assert session(SparkSettings(master="local[1]", app_name="other")) is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.scheduler.mode") == "FAIR"
