"""Ends started runs that have sent no heartbeat for minutes.

A machine that goes down takes its runs with it. Dagster's default launcher has no health check, so they would count as
started forever, with their chunks assigned and their places in the run queue taken.
"""

from __future__ import annotations

from time import monotonic, time
from typing import Final

import dagster as dg

from ..engine.connections import Ledger
from ..engine.dataset_graph import DatasetGraph
from ..engine.orchestrator_runs import silence
from .run_config import asset_key_of

#: After this time without a heartbeat a run is suspected, and after as long again it is ended. That is longer than a
#: step takes to start, a run to record its end, or a run to come back after a database outage.
SILENCE_SECONDS: Final = 60.0


class SilentRuns:
    """Suspicions are kept in memory only, so a new process starts over."""

    def __init__(self, graph: DatasetGraph) -> None:
        self._assets = {job.jobid: asset_key_of(node) for node, job in graph.produced}
        #: Since when each run is suspected, and when they were last checked, by a clock that stops in suspend.
        self._since: dict[str, float] = {}
        self._checked = 0.0

    def end(self, context: dg.SensorEvaluationContext, ledger: Ledger) -> int:
        """How many runs were ended."""
        now, ended = monotonic(), 0
        if now - self._checked > SILENCE_SECONDS:
            self._since.clear()  # the sensor was stopped, or the database was down for the runs too
        self._checked = now
        self._since = {run_id: self._since.get(run_id, now) for run_id in self._silent(context, ledger)}
        for run_id, since in self._since.items():
            run = context.instance.get_run_by_id(run_id) if now - since >= SILENCE_SECONDS else None
            if run is not None and run.status == dg.DagsterRunStatus.STARTED:
                context.instance.report_run_failed(
                    run,
                    f"This run has sent no heartbeat for {2 * SILENCE_SECONDS:.0f} seconds: its process or its machine "
                    f"is gone. Its chunks run again.",
                )
                ended += 1
        return ended

    def _silent(self, context: dg.SensorEvaluationContext, ledger: Ledger) -> list[str]:
        records = context.instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        started = {
            record.dagster_run.run_id: record.dagster_run
            for record in records
            if record.start_time is not None
            and time() - record.start_time > SILENCE_SECONDS
            and self._assets_of(record.dagster_run)
        }
        if not started:
            return []
        silences = silence(ledger, list(started))
        suspects: list[str] = []
        for run_id, run in started.items():
            # Asset checks are separate steps, which may run for any time before, between and after ours.
            has_checks = _has_checks(context, self._assets_of(run))
            if (last := silences.get(run_id)) is None:
                is_silent = _is_of_location(context, run) and not has_checks
            else:
                is_silent = last.seconds > SILENCE_SECONDS and (last.works or not has_checks)
            if is_silent:
                suspects.append(run_id)
        return suspects

    def _assets_of(self, run: dg.DagsterRun) -> set[dg.AssetKey]:
        """The assets that the run makes, if all are DataSets. The steps of other assets send no heartbeat."""
        assets = run.asset_selection or {key for jobid, key in self._assets.items() if jobid == run.job_name}
        return set(assets) if assets <= set(self._assets.values()) else set()


def _is_of_location(context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    """Was the run started for this code location? The ledger does not know runs that have not begun."""
    mine, origin = context.code_location_origin, run.remote_job_origin
    if mine is None or origin is None:
        return False
    return origin.repository_origin.code_location_origin.location_name == mine.location_name


def _has_checks(context: dg.SensorEvaluationContext, assets: set[dg.AssetKey]) -> bool:
    """Checks that steps of their own evaluate; those of a DataSet are measured in the step that makes its chunks."""
    if (location := context.repository_def) is None:
        return True
    graph = location.asset_graph
    return any(
        check.asset_key in assets and check.asset_key not in graph.get_execution_set_asset_and_check_keys(check)
        for check in graph.asset_check_keys
    )
