"""One warm Spark session for each process: local, Connect, standalone, YARN or Kubernetes by settings alone.

ODF_SPARK_MASTER   local[*] (the default), spark://host:7077, yarn, k8s://https://host:6443
ODF_SPARK_REMOTE   sc://host:15002, a shared Spark Connect server; then there is no master to choose
ODF_SPARK_CONF     any of Spark's own settings, as a JSON object: {"spark.executor.memory": "4g"}
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

# One meaning of time everywhere, and timestamps that have statistics in their files.
_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
# Chunks share the engine fairly, and a task's files appear whole or not at all, also when it is run twice.
_OWN_DRIVER: Final = {
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": Path(__file__).with_name("fairscheduler.xml").as_uri(),
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
}
# On one machine: nothing to be reached from outside, and no more pieces than hands.
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
    #: A Spark Connect server; the master is then its own matter.
    remote: str | None = None
    app_name: str = "opendataflow"
    #: Spark's own settings; they win over ours. Not shown: someone may put a secret into them.
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise InvalidInput(f"{self.remote!r} is no Spark Connect server; write it as sc://host:15002")
        # Spark's launcher writes every setting on a command line, which every user of the machine can read.
        if secret := sorted(key for key in self.conf if re.search(r"(?i)secret|password|token|access\.?key", key)):
            raise InvalidInput(
                f"{', '.join(secret)} would be readable on a command line; put it into conf/spark-defaults.conf, "
                f"or let Spark find its credentials by itself"
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> SparkSettings:
        given = os.environ if environment is None else environment
        master, remote = (given.get(name, "").strip() for name in (MASTER_VARIABLE, REMOTE_VARIABLE))
        if master and remote:
            raise InvalidInput(
                f"{MASTER_VARIABLE} and {REMOTE_VARIABLE} are both set; a session has one; unset the other"
            )
        conf = _read_conf(given.get(CONF_VARIABLE, "").strip() or "{}")
        return cls(master=master or "local[*]", remote=remote or None, conf=conf)

    @property
    def all_conf(self) -> dict[str, str]:
        ours = dict(_ALWAYS)
        if self.remote is None:
            ours |= _OWN_DRIVER | (_LOCAL if self.master.startswith("local") else {})
        return ours | dict(self.conf)


def session(settings: SparkSettings | None = None) -> SparkSession:
    """The session of this process, made when there is none or it has died. Settings do not change a living one."""
    global _current
    wanted = settings or SparkSettings.from_environment()
    with _lock:
        if _current is not None:
            made_with, spark = _current
            if is_alive(spark):
                if made_with != wanted:
                    _log.warning("this process has a Spark session already; its settings stay as they are")
                return spark
            _log.warning("the Spark session has died; a new one is made")
            _forget(spark)
            _current = None
        spark = _make(wanted)
        _current = (wanted, spark)
        return spark


def is_alive(spark: SparkSession) -> bool:
    """Does it answer? A driver that was killed, a stopped session and a restarted server do not."""
    try:
        if _is_remote(spark):
            builder: Any = spark.client._builder
            _knock(f"sc://{builder.endpoint}")
            return bool(spark.version)
        return spark.sparkContext.defaultParallelism > 0
    except Exception:  # whatever it is, it is no answer
        return False


def beside(spark: SparkSession) -> SparkSession:
    """A session for this thread alone, with the same settings, and with temporary views of its own.

    The thread keeps it, because a Connect server holds each for an hour.
    """
    shared, own = getattr(_of_thread, "sessions", (None, None))
    if own is None or shared is not spark:
        own = spark.newSession()
        if _is_remote(spark) and _current is not None:
            # Connect begins with the server's defaults.
            _configure(own, _current[0])
        _of_thread.sessions = (spark, own)
        with _lock:
            _beside.add(own)
    if _is_remote(spark):
        own.clearTags()
        for one in spark.getTags():
            own.addTag(one)
    return own


def tag_thread(spark: SparkSession, tag: str) -> None:
    """Whatever this thread asks of Spark from now on can be interrupted by the tag.

    Of a driver of our own it is the driver's tag: a session's tag is known only to the thread that has set it.
    """
    if _is_remote(spark):
        spark.addTag(tag)
    else:
        spark.sparkContext.addJobTag(tag)


def interrupt(spark: SparkSession, tag: str) -> None:
    """End what runs under this tag, also in the sessions beside."""
    if not _is_remote(spark):
        spark.sparkContext.cancelJobsWithTag(tag)
        return
    with _lock:
        every = [spark, *_beside]
    for one in every:
        # Who is dead runs nothing.
        with contextlib.suppress(Exception):
            one.interruptTag(tag)


def _make(settings: SparkSettings) -> SparkSession:
    # Before Spark starts: its Python processes must be this one, with these packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    try:
        if settings.remote is not None:
            _knock(settings.remote)
            spark = SparkSession.builder.remote(settings.remote).appName(settings.app_name).create()
            _configure(spark, settings)
            return spark
        builder = SparkSession.builder.master(settings.master).appName(settings.app_name)
        return builder.config(map=dict(settings.all_conf)).getOrCreate()
    except Exception as error:
        where = settings.remote or settings.master
        said = " ".join(str(error).split())[:300]
        raise SparkUnavailable(
            f"no Spark session at {where} ({said}); start it, install Java 17 or newer, or correct the settings"
        ) from error


def _configure(spark: SparkSession, settings: SparkSettings) -> None:
    for key, value in settings.all_conf.items():
        spark.conf.set(key, value)


def _knock(remote: str) -> None:
    """Connect would try again for minutes; a closed port says it at once."""
    parts = urlsplit(remote)
    socket.create_connection((parts.hostname, parts.port or 15002), timeout=10).close()


def _forget(spark: SparkSession) -> None:
    """Whatever PySpark remembers of a driver that was killed: it would give the dead one again."""
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
        read = json.loads(text)
    except ValueError:
        read = None
    if not isinstance(read, dict) or any(isinstance(value, dict | list) or value is None for value in read.values()):
        raise InvalidInput(
            f'{CONF_VARIABLE} is no JSON object of settings; write it like {{"spark.executor.memory": "4g"}}'
        )
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in read.items()}
