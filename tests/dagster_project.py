"""What the tests of Dagster build with: a real instance on the test's own database, and runs in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import psycopg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run

from opendataflow_dagster.engine.connections import close_ledgers
from opendataflow_dagster.engine.dataset_graph import DatasetGraph, build_graph
from opendataflow_dagster.engine.declaration import Declaration
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.orchestrator.definitions import build_definitions
from opendataflow_dagster.orchestrator.run_config import labels, partition_tags, run_config
from tests.factories import Flow


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended, and what it said of the chunks that it did not make."""

    run_id: str
    success: bool
    said: str


@dataclass(kw_only=True)
class Project:
    flow: Flow
    instance: dg.DagsterInstance
    definitions: dg.Definitions | None = None
    graph: DatasetGraph | None = None

    def build(self, *declarations: Declaration, chunks_at_once: int = 2, **options: object) -> dg.Definitions:
        warehouse = str(self.flow.root)
        self.graph = build_graph(declarations, warehouse)
        assets = options.get("assets", ())
        assert isinstance(assets, list | tuple)
        self.definitions = build_definitions(
            declarations, warehouse=warehouse, chunks_at_once=chunks_at_once, assets=assets
        )
        return self.definitions

    def launch(self, job: str, dataid: str, **tags: str) -> Outcome:
        return self._run(job, {"dagster/partition": dataid, **tags}, {})

    def launch_range(self, job: str, first: str, last: str) -> Outcome:
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        return self._run(job, tags, {})

    def launch_as_sensor(self, job: str, dataids: list[str]) -> Outcome:
        """As the readiness sensor asks for it."""
        assert self.graph is not None
        (entry,) = [entry for entry, made in self.graph.produced if made.jobid == job]
        tags = {"dagster/sensor_name": "readiness", **partition_tags(dataids), **labels(dataids)}
        return self._run(job, tags, run_config(entry, dataids))

    def launch_again(self, outcome: Outcome, **tags: str) -> Outcome:
        """As a person executes a run again in the UI: with its tags and its configuration."""
        run = self.instance.get_run_by_id(outcome.run_id)
        assert run is not None
        assert self.definitions is not None
        again = self.instance.create_run_for_job(
            self.definitions.resolve_job_def(run.job_name),
            run_config=run.run_config,
            tags={**run.tags, **tags},
            parent_run_id=run.run_id,
            root_run_id=run.run_id,
        )
        done = execute_run(InMemoryJob(self.definitions.resolve_job_def(run.job_name)), again, self.instance)
        return Outcome(run_id=again.run_id, success=done.success, said="")

    def _run(self, job: str, tags: Mapping[str, str], config: Mapping[str, object]) -> Outcome:
        assert self.definitions is not None
        done = self.definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance, tags=dict(tags), run_config=dict(config), raise_on_error=False
        )
        failures = [event.step_failure_data for event in done.all_events if event.is_step_failure]
        said = "; ".join(
            (failure.user_failure_data.description or "") if failure.user_failure_data else str(failure.error)
            for failure in failures
        )
        return Outcome(run_id=done.run_id, success=done.success, said=said)

    def labels(self, run_id: str) -> tuple[str | None, ...]:
        """How the list of runs names the chunks of a run: their number, their range, and Dagster's partition."""
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return tuple(run.tags.get(tag) for tag in ("chunks", "range", "dagster/partition"))

    def materializations(self, datasetid: str) -> list[tuple[str, dict[str, object]]]:
        """What Dagster knows, newest first."""
        found = self.instance.fetch_materializations(dg.AssetKey(datasetid), limit=1000).records
        return [
            (row.partition_key or "-", {key: value.value for key, value in row.asset_materialization.metadata.items()})
            for row in found
            if row.asset_materialization is not None
        ]

    def shown(self, datasetid: str, dataids: Iterable[str]) -> dict[str, str]:
        """Each chunk as Dagster's UI shows it: materialized, failed or missing."""
        assert self.definitions is not None
        key = dg.AssetKey(datasetid)
        partitions = self.definitions.resolve_asset_graph().get(key).partitions_def
        assert partitions is not None
        materialized = self.instance.get_materialized_partitions(key)
        status = self.instance.get_status_by_partition(key, list(dataids), partitions)
        assert status is not None
        return {
            dataid: "failed"
            if (word := status.get(dataid)) and word.value == "FAILED"
            else ("materialized" if dataid in materialized else "missing")
            for dataid in dataids
        }


@contextmanager
def project_on(url: str, root: Path, dagster_home: Path) -> Iterator[Project]:
    """The database has the schemas of the ledger and of Dagster."""
    write_dagster_yaml(url, dagster_home)
    with (
        dg.DagsterInstance.from_config(str(dagster_home)) as instance,
        Ledger(url, actor="test") as ledger,
        psycopg.connect(url, autocommit=True) as psql,
    ):
        try:
            yield Project(flow=Flow(ledger=ledger, url=url, psql=psql, root=root / "warehouse"), instance=instance)
        finally:
            close_ledgers()


def write_dagster_yaml(url: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dagster.yaml").write_text(
        f"""\
storage:
  postgres:
    postgres_url: "{dagster_url(url)}"
concurrency:
  runs:
    max_concurrent_runs: 2
run_monitoring:
  enabled: true
  poll_interval_seconds: 5
telemetry:
  enabled: false
nux:
  enabled: false
"""
    )


def dagster_url(url: str) -> str:
    return f"{url}?options=-csearch_path%3Ddagster"
