"""The reference pipeline in one process: runs of Dagster, asked for by hand or by the readiness sensor."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from assets.source import days_of
from opendataflow_dagster import LedgerResource, SparkResource
from opendataflow_dagster.engine.connections import prepare_dagster_storage
from opendataflow_dagster.engine.reading import read_chunks
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.ids import DataId, DatasetId
from opendataflow_dagster.orchestrator.run_config import dataids_in

PROJECT = Path(__file__).resolve().parent.parent
#: What goes wrong is told by the story.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the readiness sensor wants to have run."""

    job: str
    dataids: Sequence[str]
    config: Mapping[str, object]
    tags: Mapping[str, str]


class Flow:
    def __init__(self, ledger: Ledger) -> None:
        prepare_dagster_storage(ledger)
        os.environ.setdefault("DAGSTER_HOME", str(PROJECT / "dagster_home"))
        self._instance = dg.DagsterInstance.get()
        from definitions import defs  # importing it registers the DataSets

        self._defs = defs
        self._ledger = ledger
        self._spark = SparkResource().spark_session

    def ask_for(self, job: str, dataids: Sequence[str]) -> None:
        """As a backfill asks for a range."""
        tags = {"dagster/asset_partition_range_start": dataids[0], "dagster/asset_partition_range_end": dataids[-1]}
        self.run(Asked(job=job, dataids=dataids, config={}, tags=tags))

    def tick(self) -> list[Asked]:
        """As the daemon ticks the sensor."""
        sensor = self._defs.resolve_sensor_def("readiness")
        with dg.build_sensor_context(instance=self._instance, resources={"ledger": LedgerResource()}) as context:
            asked = sensor(context)
        if not isinstance(asked, dg.SensorResult):
            raise TypeError(f"the sensor gave {asked!r}")
        return [
            Asked(
                job=str(one.job_name),
                dataids=sorted(dataids_in(one.run_config)),
                config=one.run_config,
                tags={**one.tags, "dagster/sensor_name": "readiness"},
            )
            for one in asked.run_requests or ()
        ]

    def run(self, asked: Asked) -> None:
        """Whether it succeeds is seen in the ledger, chunk by chunk."""
        self._defs.resolve_job_def(asked.job).execute_in_process(
            instance=self._instance,
            run_config={**asked.config, **_QUIET},
            tags=dict(asked.tags),
            raise_on_error=False,
        )

    @contextmanager
    def spoiled_source(self, day: str) -> Iterator[None]:
        """The source sends one flight of that day with a delay of 99999 minutes."""
        header, days = days_of("flights")
        good = days[day]
        place = header.index("dep_delay")
        days[day] = [(*good[0][:place], "99999", *good[0][place + 1 :]), *good[1:]]
        try:
            yield
        finally:
            days[day] = good

    def flights_in_source(self, dataids: Sequence[str]) -> int:
        _, days = days_of("flights")
        return sum(len(days[one]) for one in dataids)

    def flights_counted(self, dataids: Sequence[DataId]) -> int:
        """What any reader of the statistics gets: the current versions."""
        frame = read_chunks(self._ledger, self._spark, DatasetId("carrier_stats"), dataids)
        return int(frame.groupBy().sum("flights").collect()[0][0])
