"""One warm Spark session for each process: local, Connect, standalone, YARN or Kubernetes, by settings alone.

ODF_SPARK_MASTER   local[*] (the default), spark://host:7077, yarn, k8s://https://host:6443
ODF_SPARK_REMOTE   sc://host:15002, a shared Spark Connect server, instead of a master
ODF_SPARK_CONF     Spark's own settings as a JSON object: {"spark.executor.memory": "4g"}
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.sql import SparkSession

from ..model.errors import InvalidInput, SparkUnavailable

MASTER_VARIABLE: Final = "ODF_SPARK_MASTER"
REMOTE_VARIABLE: Final = "ODF_SPARK_REMOTE"
CONF_VARIABLE: Final = "ODF_SPARK_CONF"

# The same time zone everywhere, and timestamps that have statistics in their files.
_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
# Chunks share the driver fairly, and a task's files appear completely or not at all, even if it runs twice.
_OWN_DRIVER: Final = {
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": Path(__file__).with_name("fairscheduler.xml").as_uri(),
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
}
# On one machine: nothing is reachable from outside, and there are no more shuffle partitions than cores.
_LOCAL: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
}

_log = logging.getLogger(__name__)
_lock = threading.RLock()
_current: tuple[SparkSettings, SparkSession] | None = None
_of_thread = threading.local()
_beside: WeakSet[SparkSession] = WeakSet()


@dataclass(frozen=True, kw_only=True, slots=True)
class SparkSettings:
    master: str = "local[*]"
    #: A Spark Connect server, which has its own master.
    remote: str | None = None
    app_name: str = "opendataflow"
    #: Spark's own settings, which override ours. Not in the repr: they may contain secrets.
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise InvalidInput(
                f"{self.remote!r} is not the URL of a Spark Connect server; use the form sc://host:15002"
            )
        # Spark's launcher puts every setting on a command line, which every user of the machine can read.
        if secret := sorted(key for key in self.conf if re.search(r"(?i)secret|password|token|access\.?key", key)):
            raise InvalidInput(
                f"{', '.join(secret)} would be visible on a command line; set it in conf/spark-defaults.conf, "
                f"or use Spark's credential providers"
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> SparkSettings:
        given = os.environ if environment is None else environment
        master, remote = (given.get(name, "").strip() for name in (MASTER_VARIABLE, REMOTE_VARIABLE))
        if master and remote:
            raise InvalidInput(f"{MASTER_VARIABLE} and {REMOTE_VARIABLE} are both set; unset one of them")
        conf = _read_conf(given.get(CONF_VARIABLE, "").strip() or "{}")
        return cls(master=master or "local[*]", remote=remote or None, conf=conf)

    @property
    def all_conf(self) -> dict[str, str]:
        ours = dict(_ALWAYS)
        if self.remote is None:
            ours |= _OWN_DRIVER | (_LOCAL if self.master.startswith("local") else {})
        return ours | dict(self.conf)


def session(settings: SparkSettings | None = None) -> SparkSession:
    """The session of this process, created if there is none or it has died. Settings do not change a live session."""
    global _current
    wanted = settings or SparkSettings.from_environment()
    with _lock:
        if _current is not None:
            current, spark = _current
            if is_alive(spark):
                if current != wanted:
                    _log.warning("this process already has a Spark session; the new settings are ignored")
                return spark
            _log.warning("the Spark session has died; creating a new one")
            _forget(spark)
            _current = None
        spark = _make(wanted)
        _current = (wanted, spark)
        return spark


def is_alive(spark: SparkSession) -> bool:
    """Whether it responds. A killed driver, a stopped session and a restarted server do not."""
    try:
        if _is_remote(spark):
            builder: Any = spark.client._builder
            _probe(f"sc://{builder.endpoint}")
            return bool(spark.version)
        return spark.sparkContext.defaultParallelism > 0
    except Exception:
        return False


def beside(spark: SparkSession) -> SparkSession:
    """A session for this thread alone, with the same settings and its own temporary views.

    The thread reuses it, because a Connect server keeps each session for an hour.
    """
    shared, own = getattr(_of_thread, "sessions", (None, None))
    if own is None or shared is not spark:
        own = spark.newSession()
        if _is_remote(spark) and _current is not None:
            # A Connect session starts with the server's defaults.
            _configure(own, _current[0])
        _of_thread.sessions = (spark, own)
        with _lock:
            _beside.add(own)
    if _is_remote(spark):
        own.clearTags()
        for tag in spark.getTags():
            own.addTag(tag)
    return own


def tag_thread(spark: SparkSession, tag: str) -> None:
    """From now on, `interrupt` with this tag cancels what this thread runs on Spark.

    With our own driver it is a job tag of the driver: a session's tag is visible only to the thread that set it.
    """
    if _is_remote(spark):
        spark.addTag(tag)
    else:
        spark.sparkContext.addJobTag(tag)


def interrupt(spark: SparkSession, tag: str) -> None:
    """Cancel what runs under this tag, also in the sessions from `beside`."""
    if not _is_remote(spark):
        spark.sparkContext.cancelJobsWithTag(tag)
        return
    with _lock:
        sessions = [spark, *_beside]
    for each in sessions:
        # A dead session runs nothing.
        with contextlib.suppress(Exception):
            each.interruptTag(tag)


def _make(settings: SparkSettings) -> SparkSession:
    # Set before Spark starts, so that its Python workers use this interpreter and its packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    try:
        if settings.remote is not None:
            _probe(settings.remote)
            spark = SparkSession.builder.remote(settings.remote).appName(settings.app_name).create()
            _configure(spark, settings)
            return spark
        builder = SparkSession.builder.master(settings.master).appName(settings.app_name)
        return builder.config(map=dict(settings.all_conf)).getOrCreate()
    except Exception as error:
        where = settings.remote or settings.master
        reason = " ".join(str(error).split())[:300]
        raise SparkUnavailable(
            f"no Spark session at {where} ({reason}); start Spark, install Java 17 or newer, or correct the settings"
        ) from error


def _configure(spark: SparkSession, settings: SparkSettings) -> None:
    for key, value in settings.all_conf.items():
        spark.conf.set(key, value)


def _probe(remote: str) -> None:
    """Fail at once on a closed port; Connect would retry for minutes."""
    parts = urlsplit(remote)
    socket.create_connection((parts.hostname, parts.port or 15002), timeout=10).close()


def _forget(spark: SparkSession) -> None:
    """Clear what PySpark caches of a dead driver, or it would return that one again."""
    if _is_remote(spark):
        with contextlib.suppress(Exception):
            spark.client.close()
        return
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is not None and process is not None and process.poll() is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _is_remote(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _read_conf(text: str) -> dict[str, str]:
    try:
        conf = json.loads(text)
    except ValueError:
        conf = None
    if not isinstance(conf, dict) or any(isinstance(value, dict | list) or value is None for value in conf.values()):
        raise InvalidInput(
            f'{CONF_VARIABLE} is not a JSON object of settings; use the form {{"spark.executor.memory": "4g"}}'
        )
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in conf.items()}
