"""raw -> tidy of ten days with short leases, for tests that kill. The work on a day waits where hold.py says so:

compute    in the author's function
write      in Spark, when some rows are written
staged     when all is written, and nothing published
published  when it is published, and Dagster does not know it

For the last two the seams of the run's own process are wrapped here; the product has no such place.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import EventLogEntry
from dagster_postgres import PostgresEventLogStorage
from pyspark.sql import DataFrame

from opendataflow_dagster import ChunkContext, Policy, build_definitions, daily, dataset
from opendataflow_dagster.model.manifest import Written
from opendataflow_dagster.orchestrator import silent_runs
from opendataflow_dagster.warehouse import parquet
from tests.pipelines.hold import wait_at, wait_in_write

DAYS = daily("2024-01-01", "2024-01-10")
POLICY = Policy(lease=timedelta(seconds=20), max_attempts=50)

write, store_event_batch = parquet.write, PostgresEventLogStorage.store_event_batch


@dataset(partitions=DAYS, policy=POLICY)
def raw(context: ChunkContext) -> DataFrame:
    wait_at("compute", context.dataid)
    rows = context.spark.range(100).selectExpr("id", f"'{context.dataid}' as day", "id % 3 as kind")
    return wait_in_write(rows, context.dataid, last=99)


@dataset(partitions=DAYS, policy=POLICY)
def tidy(raw: DataFrame) -> DataFrame:
    return raw.groupBy("day", "kind").count()


def write_and_wait(frame: DataFrame, location: str, **options: Any) -> Written:
    written = write(frame, location, **options)
    wait_at("staged", Path(location).parent.name)
    return written


def wait_and_store(self: PostgresEventLogStorage, events: Sequence[EventLogEntry]) -> None:
    for one in events:
        if one.dagster_event and one.dagster_event.is_step_materialization and one.dagster_event.partition:
            wait_at("published", one.dagster_event.partition)
    store_event_batch(self, events)


seams = pytest.MonkeyPatch()
seams.setattr(parquet, "write", write_and_wait)
seams.setattr(PostgresEventLogStorage, "store_event_batch", wait_and_store)
# Nobody has minutes here.
seams.setattr(silent_runs, "SILENCE_SECONDS", 30.0)

defs = build_definitions([raw, tidy], chunks_at_once=2)
