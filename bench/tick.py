"""What a tick of the readiness sensor costs: with nothing to do among a million chunks, and with 10,000 that can run.

    python bench/tick.py            a million chunks; about two minutes
    python bench/tick.py --quick    100 thousand; under a minute

The sensor is evaluated as the code server does it, with a real instance of Dagster on the same Postgres. The last
line is one JSON object; everything before it is for people.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import dagster as dg
import psycopg

from opendataflow_dagster import LedgerResource, dataset, ranges
from opendataflow_dagster.engine.dataset_graph import DatasetGraph, build_graph, register_graph
from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.orchestrator.heal_sensor import heal_sensor
from opendataflow_dagster.orchestrator.readiness_sensor import readiness_sensor
from opendataflow_dagster.orchestrator.run_config import dataids_in
from opendataflow_dagster.protocol.register import plan

TARGETS = {"idle_s_at_1m": 0.1, "runnable_10k_s": 1.0}
RUNNABLE = 10_000
ASKED = ranges(0, RUNNABLE - 1, 1)

# As they would lie there, without the minutes that a million changes through the triggers take.
_FILL = """
alter table dataflow.data_manifest disable trigger user;
alter table dataflow.datastatus disable trigger user;
insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, row_count, content_digest)
select 'made', to_char(i, 'FM0000000'), 1, 'made', '/warehouse/made/' || i, 1000, md5(i::text)
  from generate_series(1, {size}) as i;
insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, manifest_id)
select m.datasetid, m.jobid, m.dataid, 'OUT', 'READY', m.manifest_id from dataflow.data_manifest m;
alter table dataflow.data_manifest enable trigger user;
alter table dataflow.datastatus enable trigger user;
"""
_YAML = """
storage:
  postgres:
    postgres_url: "{url}?options=-csearch_path%3Ddagster"
telemetry:
  enabled: false
"""


def main() -> None:
    options = argparse.ArgumentParser(description="Measure ticks of the sensors on an embedded Postgres of their own.")
    options.add_argument("--quick", action="store_true", help="100 thousand chunks instead of a million")
    options.add_argument("--smoke", action="store_true", help="a thousand chunks, only to see that it works")
    chosen = options.parse_args()
    size = 1_000 if chosen.smoke else 100_000 if chosen.quick else 1_000_000
    runnable = 100 if chosen.smoke else RUNNABLE
    with _ground(size) as (instance, ledger, found):
        idle = tick(instance, readiness_sensor(found), expected=0)
        print(f"readiness, idle at {size:,} chunks:      {idle:.3f} s")
        heal = tick(instance, heal_sensor(found), expected=0, cursor=json.dumps({"reported": size}))
        print(f"heal, idle at {size:,} chunks:           {heal:.3f} s")
        plan(ledger, found.produced[1][1], islice(ASKED.all(), runnable))
        busy = tick(instance, readiness_sensor(found), expected=runnable)
        print(f"readiness, {runnable:,} chunks can run: {busy:.3f} s")
    figures = {"idle_s_at_1m": round(idle, 4), "runnable_10k_s": round(busy, 4)}
    if not chosen.smoke:
        for name, most in TARGETS.items():
            print(f"  {'met   ' if figures[name] <= most else 'MISSED'}  {name} = {figures[name]} (<= {most})")
    note = {} if size == 1_000_000 else {"note": f"idle at {size:,}, busy with {runnable:,} chunks"}
    print(json.dumps({**figures, **note}))


def tick(
    instance: dg.DagsterInstance, sensor: dg.SensorDefinition, *, expected: int, cursor: str | None = None
) -> float:
    """The median of some; the first has plans and connections to make."""
    times: list[float] = []
    for _ in range(6):
        context = dg.build_sensor_context(instance=instance, cursor=cursor, resources={"ledger": LedgerResource()})
        began = time.perf_counter()
        done = sensor.evaluate_tick(context)
        times.append(time.perf_counter() - began)
        started = sum(len(dataids_in(request.run_config)) for request in done.run_requests or ())
        assert started == expected, (started, expected)
    return statistics.median(times[1:])


@contextmanager
def _ground(size: int) -> Iterator[tuple[dg.DagsterInstance, Ledger, DatasetGraph]]:
    with tempfile.TemporaryDirectory(prefix="odf-bench-") as home:
        embedded = EmbeddedPostgres(Path(home))
        try:
            url = os.environ["ODF_DATABASE_URL"] = embedded.start()
            Path(home, "dagster.yaml").write_text(_YAML.format(url=url))
            found = build_graph(
                [dataset("made")(lambda: None), dataset("asked", partitions=ASKED)(lambda: None)], "/warehouse"
            )
            with Ledger(url) as ledger, psycopg.connect(url, autocommit=True) as connection:
                schema.install(ledger)
                register_graph(ledger, found)
                connection.execute("create schema dagster")
                began = time.monotonic()
                connection.execute(_FILL.format(size=size).encode())
                connection.execute("vacuum (analyze)")
                print(f"{size:,} chunks are there after {time.monotonic() - began:.0f} s")
                with dg.DagsterInstance.from_config(home) as instance:
                    yield instance, ledger, found
        finally:
            embedded.stop()


if __name__ == "__main__":
    main()
