"""The reference pipeline in one process: Dagster runs, requested by hand or by the readiness sensor."""

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
#: The demo itself shows what fails.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestedRun:
    """A run that the readiness sensor requests."""

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
        """As a backfill requests a range."""
        tags = {"dagster/asset_partition_range_start": dataids[0], "dagster/asset_partition_range_end": dataids[-1]}
        self.run(RequestedRun(job=job, dataids=dataids, config={}, tags=tags))

    def tick(self) -> list[RequestedRun]:
        """As the daemon evaluates the sensor."""
        sensor = self._defs.resolve_sensor_def("readiness")
        with dg.build_sensor_context(instance=self._instance, resources={"ledger": LedgerResource()}) as context:
            result = sensor(context)
        if not isinstance(result, dg.SensorResult):
            raise TypeError(f"the sensor returned {result!r}")
        return [
            RequestedRun(
                job=str(request.job_name),
                dataids=sorted(dataids_in(request.run_config)),
                config=request.run_config,
                tags={**request.tags, "dagster/sensor_name": "readiness"},
            )
            for request in result.run_requests or ()
        ]

    def run(self, requested: RequestedRun) -> None:
        """The ledger shows the outcome of each chunk."""
        self._defs.resolve_job_def(requested.job).execute_in_process(
            instance=self._instance,
            run_config={**requested.config, **_QUIET},
            tags=dict(requested.tags),
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
        return sum(len(days[dataid]) for dataid in dataids)

    def flights_counted(self, dataids: Sequence[DataId]) -> int:
        """What readers of the statistics get: the current versions."""
        frame = read_chunks(self._ledger, self._spark, DatasetId("carrier_stats"), dataids)
        return int(frame.groupBy().sum("flights").collect()[0][0])
