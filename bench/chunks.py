"""What the whole path costs a small chunk, beside Spark alone and beside one run of Dagster for each partition.

    python bench/chunks.py            1,000 chunks each way, in four runs; about eight minutes
    python bench/chunks.py --quick    240 chunks each way, in three runs; about two minutes

Four ways through the same reads and writes, in one process, with one warm Spark session, in alternating rounds:

    bare      a PySpark loop: read a file, filter it, write a folder; nothing is recorded
    told      the same loop, told the columns, which Spark otherwise asks each file for in a job of its own
    sequence  a run of Dagster over the chunks, one at a time: request, claim, five answers, read through manifests,
              checks and fingerprint during the write, publish, history, an event of Dagster for each
    overlap   the same, several chunks at a time: as many as a run makes unless it is told otherwise

And vanilla Dagster: a run for each partition, each in a process and with a Spark session of its own; a sample of them.
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import dagster as dg
import psycopg
from pyspark.sql import DataFrame, SparkSession

from opendataflow_dagster import ChunkContext, build_definitions, daily, dataset, external_dataset, row_count
from opendataflow_dagster.engine.dataset_graph import build_graph
from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.model.ids import DataId
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.model.partitions import END_OF_TIME
from opendataflow_dagster.orchestrator.resources import SparkResource
from opendataflow_dagster.orchestrator.run_config import run_config
from opendataflow_dagster.protocol.announce import announce

TARGETS = {"sequence_over_bare": ("<=", 1.10), "overlap_over_bare": ("<", 0.8), "times_vanilla": (">=", 30.0)}
ROWS = 1_000
# The IO manager's own default.
AT_ONCE = 0

#: A sample of one run for each partition, as any tutorial would write it.
VANILLA = """
import dagster as dg
from pyspark.sql import SparkSession

days = dg.DailyPartitionsDefinition("2000-01-01", end_date="2020-01-01")

@dg.asset(partitions_def=days)
def small(context):
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.read.parquet(f"{source}/{context.partition_key}")
    frame.where("id % 10 <> 0").write.parquet(f"{target}/{context.partition_key}")

defs = dg.Definitions(assets=[small], executor=dg.in_process_executor)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    rounds: int
    chunks: int
    vanilla_runs: int


# As many chunks in a run as a sensor would give it, but for the time that it takes.
FULL = Scale(rounds=4, chunks=250, vanilla_runs=5)
QUICK = Scale(rounds=3, chunks=80, vanilla_runs=2)
SMOKE = Scale(rounds=1, chunks=3, vanilla_runs=1)


DAYS = daily("2000-01-01", "2019-12-31")


@dataset(partitions=DAYS, checks=[row_count(minimum=1)])
def small(raw: DataFrame, context: ChunkContext) -> DataFrame:
    """What every way does to a chunk."""
    return raw.where("id % 10 <> 0")


def main() -> None:
    options = argparse.ArgumentParser(description="Measure the whole path of small chunks.")
    options.add_argument("--quick", action="store_true", help="240 chunks each way; about two minutes")
    options.add_argument("--smoke", action="store_true", help="a few chunks, only to see that it works")
    chosen = options.parse_args()
    scale = SMOKE if chosen.smoke else QUICK if chosen.quick else FULL
    with tempfile.TemporaryDirectory(prefix="odf-bench-") as folder, _ground(Path(folder)) as ground:
        figures = measure(ground, scale)
    if not chosen.smoke:
        print("\nTargets")
        for name, (sign, target) in TARGETS.items():
            met = figures[name] >= target if sign == ">=" else figures[name] <= target
            print(f"  {'met   ' if met else 'MISSED'}  {name} = {figures[name]} ({sign} {target})")
    print(json.dumps(figures))


class Ground:
    """A ledger, an instance of Dagster, a warm Spark, and raw chunks that lie there."""

    def __init__(self, folder: Path, url: str, instance: dg.DagsterInstance) -> None:
        self.folder = folder
        self.spark: SparkSession = SparkResource().spark_session
        self._url = url
        self._instance = instance
        self._days = DAYS.between(DAYS.time_of(DAYS.first), END_OF_TIME)
        warehouse = str(folder / "warehouse")
        self._raw = folder / "raw"
        declared = [external_dataset("raw", partitions=DAYS, location=str(self._raw)), small]
        self._jobs = {
            at_once: build_definitions(declared, warehouse=warehouse, chunks_at_once=at_once).resolve_job_def("small")
            for at_once in (1, AT_ONCE)
        }
        ((self._entry, _),) = build_graph(declared, warehouse).produced
        self.spark.range(ROWS).selectExpr("id", "id * 2 as twice", "cast(id as string) as word").coalesce(
            1
        ).write.parquet(str(folder / "one"))

    def chunks(self, count: int) -> list[DataId]:
        """So many new raw chunks: copies of one file, announced with their manifests."""
        dataids = list(itertools.islice(self._days, count))
        (file,) = (self.folder / "one").glob("*.parquet")
        manifest = NewManifest(location=str(self._raw), files=(File(path=file.name, size=file.stat().st_size),))
        manifests: dict[DataId, NewManifest] = {}
        for dataid in dataids:
            place = self._raw / dataid
            place.mkdir(parents=True)
            shutil.copy(file, place / file.name)
            manifests[dataid] = replace(manifest, location=str(place))
        with Ledger(self._url) as ledger:
            announce(ledger, "raw", dataids, by="bench", manifests=manifests)
        return dataids

    def bare(self, dataids: list[DataId], *, told: bool = False) -> None:
        for dataid in dataids:
            reader = self.spark.read.schema("id long, twice long, word string") if told else self.spark.read
            frame = reader.parquet(str(self._raw / dataid)).where("id % 10 <> 0")
            frame.write.parquet(str(self.folder / "bare" / dataid))

    def ours(self, dataids: list[DataId], at_once: int) -> None:
        """One run, started as a sensor starts it; not ours, whose runs take along what else can run."""
        done = self._jobs[at_once].execute_in_process(
            instance=self._instance,
            run_config=dict(run_config(self._entry, dataids)),
            tags={"dagster/sensor_name": "bench", "dagster/partition": dataids[0]},
        )
        if not done.success:
            raise RuntimeError("a run failed; the figures would be wrong")

    def vanilla(self, dataids: list[DataId]) -> None:
        project = self.folder / "vanilla.py"
        project.write_text(
            dedent(VANILLA).replace("{source}", str(self._raw)).replace("{target}", str(self.folder / "vanilla"))
        )
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        for dataid in dataids:
            subprocess.run(
                [
                    *(sys.executable, "-m", "dagster", "asset", "materialize"),
                    *("-f", str(project), "--select", "small", "--partition", dataid),
                ],
                check=True,
                capture_output=True,
                cwd=self.folder,
                env=environment,
            )


def measure(ground: Ground, scale: Scale) -> dict[str, float]:
    ways: dict[str, Callable[[list[DataId]], None]] = {
        "bare": ground.bare,
        "told": lambda dataids: ground.bare(dataids, told=True),
        "sequence": lambda dataids: ground.ours(dataids, 1),
        "overlap": lambda dataids: ground.ours(dataids, AT_ONCE),
    }
    for make in ways.values():
        make(ground.chunks(2))  # warms up
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    print("overlap: as many chunks at a time as without ODF_CHUNKS_AT_ONCE, two for each core")
    print(f"{'seconds for ' + str(scale.chunks) + ' chunks':<24}" + "".join(f"{way:>10}" for way in ways))
    for number in range(scale.rounds):
        # Each way goes first in turn: the files of the others may still be on their way to the disk.
        for way in [*ways][number:] + [*ways][:number]:
            dataids = ground.chunks(scale.chunks)
            begin = time.perf_counter()
            ways[way](dataids)
            seconds[way].append(time.perf_counter() - begin)
        print(
            f"{'round ' + str(number + 1):<24}" + "".join(f"{took[-1]:>10.2f}" for took in seconds.values()), flush=True
        )

    sample = ground.chunks(scale.vanilla_runs)
    begin = time.perf_counter()
    ground.vanilla(sample)
    vanilla = 60 * len(sample) / (time.perf_counter() - begin)
    ours = 60 * scale.chunks / statistics.median(seconds["overlap"])
    print(f"chunks a minute: {ours:,.0f} through the whole path, {vanilla:.1f} with a run for each partition")
    told = {way: _ratio(seconds[way], seconds["told"]) for way in ("sequence", "overlap")}
    print(f"over the loop that is told the columns: sequence {told['sequence']}, overlap {told['overlap']}")
    return {
        "sequence_over_bare": _ratio(seconds["sequence"], seconds["bare"]),
        "overlap_over_bare": _ratio(seconds["overlap"], seconds["bare"]),
        "times_vanilla": round(ours / vanilla, 1),
    }


def _ratio(ours: list[float], bare: list[float]) -> float:
    """Round by round: the machine's noise hits neighbours alike."""
    return round(statistics.median(mine / other for mine, other in zip(ours, bare, strict=True)), 2)


@contextmanager
def _ground(folder: Path) -> Iterator[Ground]:
    embedded = EmbeddedPostgres(folder / "odf")
    try:
        url = embedded.start()
        os.environ["ODF_DATABASE_URL"] = url
        with Ledger(url) as ledger:
            schema.install(ledger)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create schema dagster")
        home = folder / "dagster"
        home.mkdir()
        (home / "dagster.yaml").write_text(
            f'storage:\n  postgres:\n    postgres_url: "{url}?options=-csearch_path%3Ddagster"\n'
            "telemetry:\n  enabled: false\n"
        )
        with dg.DagsterInstance.from_config(str(home)) as instance:
            yield Ground(folder, url, instance)
    finally:
        embedded.stop()


if __name__ == "__main__":
    main()
