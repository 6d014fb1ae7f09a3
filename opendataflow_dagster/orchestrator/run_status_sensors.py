"""Sensors that release the claims of runs that failed or were cancelled.

Chunks of a cancelled run are FAILED until a person requests them again. Chunks of a run that died are retried.
"""

from __future__ import annotations

import dagster as dg

from ..engine.connections import Ledger
from ..engine.orchestrator_runs import close_runs
from .resources import LedgerResource


def run_status_sensors() -> list[dg.SensorDefinition]:
    @dg.run_failure_sensor(
        name="claims_of_failed_runs",
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=5,
        description="Releases the claims of a run that died.",
    )
    def failed(context: dg.RunFailureSensorContext, ledger: LedgerResource) -> None:
        release_claims(ledger.ledger, context.dagster_run)

    @dg.run_status_sensor(
        name="claims_of_cancelled_runs",
        run_status=dg.DagsterRunStatus.CANCELED,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=5,
        description="Fails the chunks of a run that was cancelled.",
    )
    def cancelled(context: dg.RunStatusSensorContext, ledger: LedgerResource) -> None:
        release_claims(ledger.ledger, context.dagster_run)

    return [failed, cancelled]


def release_claims(ledger: Ledger, run: dg.DagsterRun) -> int:
    """How many chunks the run still held; a run that ended properly holds none."""
    return close_runs(ledger, run.run_id, cancelled=is_cancelled(run))


def is_cancelled(run: dg.DagsterRun) -> bool:
    """CANCELING comes before Dagster interrupts the run, CANCELED when it has ended."""
    return run.status in (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED)
