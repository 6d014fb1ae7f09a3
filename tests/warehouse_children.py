"""Processes that the tests of Spark sessions start: a session belongs to a process, and these are killed or cut off.

Each takes its root and says what it saw as JSON, on the last line.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import StructType

from opendataflow_dagster import sql_dataset
from opendataflow_dagster.engine.chunk import ChunkContext, Inputs
from opendataflow_dagster.engine.declaration import ReadForeign
from opendataflow_dagster.engine.spark_source import SparkSource, require_frame
from opendataflow_dagster.model.checks import between, not_null, unique
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.diff import Pairing
from opendataflow_dagster.model.errors import InvalidDefinition, OpenDataFlowError
from opendataflow_dagster.model.ids import ClaimId, DataId, DatasetId, JobId
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.model.verdict import InputVersion
from opendataflow_dagster.warehouse.catalog import refresh
from opendataflow_dagster.warehouse.parquet import read, read_files
from opendataflow_dagster.warehouse.session import interrupt, is_alive, session, tag_thread
from opendataflow_dagster.warehouse.spark_diff import compare
from tests.effort import PATIENCE_SECONDS
from tests.warehouse import rows, staged, version


def sql_chunk(spark: SparkSession, dataid: str, read: ReadForeign) -> DataFrame:
    """A chunk of a SQL DataSet, computed as in a run."""
    declared = sql_dataset("select id, :dataid as day, current_timezone() as zone from raw", "made")
    raw = InputVersion(datasetid=DatasetId("raw"), dataid=DataId(dataid), manifest_id=None, version=None)
    claim = Claim(
        claim_id=ClaimId(1),
        jobid=JobId("made"),
        dataid=DataId(dataid),
        outputs=(declared.datasetid,),
        attempt=1,
        lease=timedelta(minutes=1),
        lease_until=datetime.now(UTC),
        run_id=None,
        inputs=(raw,),
    )
    log = logging.getLogger(__name__)
    context = ChunkContext(datasetid=declared.datasetid, dataid=claim.dataid, claim=claim, spark=spark, log=log)
    assert isinstance(declared.source, SparkSource)
    inputs = Inputs(claim=claim, declaration=declared, spark=spark, foreign={raw.datasetid: read})
    return require_frame(declared.source.compute(inputs, context), declared.datasetid)


def interrupted_sql(spark: SparkSession, root: Path) -> str:
    """The error of a SQL chunk that is interrupted by its tag during the computation."""
    root.mkdir()

    @udf("long")
    def waited(number: int) -> int:
        (root / "begun").touch()
        _wait_for(root / "go")
        return number

    def compute() -> str:
        tag_thread(spark, "run-1")
        try:
            return str(
                sql_chunk(spark, "d", lambda session, _: session.range(1).select(waited("id").alias("id"))).collect()
            )
        except Exception as error:
            return str(error)

    with ThreadPoolExecutor() as pool:
        future = pool.submit(compute)
        _wait_for(root / "begun")
        interrupt(spark, "run-1")
        try:
            return future.result(timeout=PATIENCE_SECONDS)
        finally:
            (root / "go").touch()


def through_connect(root: Path) -> dict[str, object]:
    """Everything that the warehouse does, through a Connect server."""
    spark = session()
    frame = spark.range(10).selectExpr("id", "id % 3 as k", "map('a', id) as m")
    newer = spark.range(1, 11).selectExpr("id", "id % 3 as k", "map('a', if(id = 5, 0, id)) as m")
    made = staged(frame, root, "d:1", [unique("id"), unique("k"), between("id", 0, 8), not_null("k")])
    empty = staged(frame.where("id < 0"), root, "d:2")
    name = refresh(spark, DatasetId("set"), [version(made, "d:1"), version(empty, "d:2")])
    errors = []
    for broken in (frame.selectExpr("1 / id as a"), frame.selectExpr("id as a", "id as A")):
        try:
            staged(broken, root)
        except OpenDataFlowError as error:
            errors.append(f"{type(error).__name__}: {error}")
    try:
        staged(frame, root, checks=[between("k", "a", "b"), not_null("nosuch")])
    except InvalidDefinition as error:
        errors.append(f"{type(error).__name__}: {error}")
    return {
        "session": type(spark).__module__,
        "same": session() is spark,
        "rows": made.row_count,
        "digest": made.content_digest,
        "checks": {result.name: [result.passed, result.detail] for result in made.checks},
        "read": rows(read(spark, [version(made, "d:1"), version(empty, "d:2")]).select("id", "k")),
        "empty": [empty.row_count, read(spark, [version(empty)]).count()],
        "none": read(spark, [], frame.schema).count(),
        "table": rows(spark.sql(f"select count(*), max(dataid) from {name}")),
        "diff": [differences(spark, made, staged(newer, root, "d:1"), *key) for key in ((), ("id",))],
        "errors": errors,
        "zone": spark.conf.get("spark.sql.session.timeZone"),
        "sql": rows(sql_chunk(spark, "d:1", lambda session, dataid: session.range(2))),
        "interrupted": interrupted_sql(spark, root / "interrupted"),
    }


def differences(spark: SparkSession, old: NewManifest, new: NewManifest, *key: str) -> list[object]:
    frames = [read_files(spark, side.location, side.files) for side in (old, new)]
    pairing = Pairing(key=key, columns=dict.fromkeys(("id", "k", "m"), False))
    found = compare(frames[0], frames[1], pairing, 1)
    changed = [[dict(each.key), dict(each.new or {})] for each in found.examples if each.change == "changed"]
    return [found.added, found.removed, found.changed, changed]


def without_its_server(root: Path) -> dict[str, object]:
    """The test kills the server as soon as this process has a session."""
    spark = session()
    frame = spark.range(3)
    (root / "connected").touch()
    _wait_for(root / "killed")
    found: dict[str, object] = {"alive": is_alive(spark)}
    try:
        session()
    except OpenDataFlowError as error:
        found["error"] = f"{type(error).__name__}: {error}"
    found["frame"] = str(type(frame).__module__)
    return found


def survives_its_driver(root: Path) -> dict[str, object]:
    spark = session()
    staged(spark.range(3), root, "before")
    gateway = SparkContext._gateway
    assert gateway is not None
    frame = spark.range(3)
    gateway.proc.send_signal(signal.SIGKILL)
    gateway.proc.wait()
    found: dict[str, object] = {}
    try:
        staged(frame, root, "cut off")
    except OpenDataFlowError as error:
        found["error"] = f"{type(error).__name__}: {error}"
        found["retryable"] = error.retryable
    again = session()
    made = staged(again.range(3), root, "after")
    found |= {"new": again is not spark, "rows": rows(read(again, [version(made)])), "same": session() is again}
    again.stop()
    found["after stop"] = session().range(5).count()
    return found


def on_a_cluster(root: Path) -> dict[str, object]:
    """Each task reports that it has started, and waits for the test."""
    spark = session()
    marks = root / "marks"
    marks.mkdir()
    go = root / "go"

    @udf("long")
    def waited(number: int) -> int:
        if not go.exists():
            (marks / str(os.getpid())).touch()
            _wait_for(go)
        return number * 2

    frame = spark.range(0, 1000, numPartitions=6).select("id", waited("id").alias("twice"))
    declared = StructType.fromDDL("id long, twice long")
    assert isinstance(declared, StructType)
    made = staged(frame, root / "set", "d", [unique("id")], declared)
    back = read(spark, [version(made)])
    return {
        "rows": made.row_count,
        "files": len(made.files),
        "digest": made.content_digest,
        "check": [made.checks[0].passed, made.checks[0].detail],
        "sums": rows(back.selectExpr("count(1)", "count(distinct id)", "sum(id)", "sum(twice)")),
        "left": sorted(path.name for path in Path(made.location).iterdir() if path.name[0] not in "._"),
        "recorded": sorted(file.path for file in made.files),
        "temporary": (Path(made.location) / "_temporary").exists(),
    }


def _wait_for(path: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not path.exists():
        if time.monotonic() > until:
            raise TimeoutError(path)
        time.sleep(0.02)


if __name__ == "__main__":
    try:
        answer = globals()[sys.argv[1]](Path(sys.argv[2]))
        sys.stdout.write("\n" + json.dumps(answer) + "\n")
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        code = 1
    sys.stdout.flush()
    # Do not wait for what Spark would still send to a dead server.
    os._exit(code)
