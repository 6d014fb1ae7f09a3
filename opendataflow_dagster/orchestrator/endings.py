"""A run that failed or was cancelled without a word holds nothing any more: its claims are given back at once."""

from __future__ import annotations

import dagster as dg

from ..ledger.database import Ledger
from ..ledger.reports import runs_of
from ..protocol.release import abandon_run
from .resources import LedgerResource


def run_endings() -> list[dg.SensorDefinition]:
    @dg.run_failure_sensor(
        name="claims_of_failed_runs",
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=5,
        description="Gives back what a dead run still holds.",
    )
    def failed(context: dg.RunFailureSensorContext, ledger: LedgerResource) -> None:
        release(ledger.ledger, context.dagster_run, "failed")

    @dg.run_status_sensor(
        name="claims_of_cancelled_runs",
        run_status=dg.DagsterRunStatus.CANCELED,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=5,
        description="Gives back what a cancelled run still holds.",
    )
    def cancelled(context: dg.RunStatusSensorContext, ledger: LedgerResource) -> None:
        release(ledger.ledger, context.dagster_run, "was cancelled")

    return [failed, cancelled]


def release(ledger: Ledger, run: dg.DagsterRun, what: str) -> int:
    """How many chunks it still held. A run that ended by itself has given everything back."""
    with ledger.statement() as statement:
        left = runs_of(statement, run.run_id)
    return sum(abandon_run(ledger, one, f"Dagster's run {run.run_id} {what}") for one in left)
