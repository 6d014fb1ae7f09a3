"""A run that ended badly holds nothing any more.

What a person has cancelled stops: it is FAILED until somebody asks for it again. What died runs again by itself.
"""

from __future__ import annotations

from typing import Final

import dagster as dg

from ..ledger.database import Ledger
from ..ledger.reports import runs_of
from ..model.ids import RunId
from ..protocol.cancel import cancel_run
from ..protocol.release import abandon_run
from .resources import LedgerResource

#: Dagster says the first before it interrupts the run, and the second when the run has ended.
_CANCELLED: Final = (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED)


def run_endings() -> list[dg.SensorDefinition]:
    @dg.run_failure_sensor(
        name="claims_of_failed_runs",
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=5,
        description="Gives back what a dead run still holds.",
    )
    def failed(context: dg.RunFailureSensorContext, ledger: LedgerResource) -> None:
        release(ledger.ledger, context.dagster_run)

    @dg.run_status_sensor(
        name="claims_of_cancelled_runs",
        run_status=dg.DagsterRunStatus.CANCELED,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=5,
        description="Ends what a cancelled run still holds, and what was asked of it.",
    )
    def cancelled(context: dg.RunStatusSensorContext, ledger: LedgerResource) -> None:
        release(ledger.ledger, context.dagster_run)

    return [failed, cancelled]


def release(ledger: Ledger, run: dg.DagsterRun) -> int:
    """How many chunks it still had. A run that could say how it ended has none."""
    with ledger.statement() as statement:
        left = runs_of(statement, run.run_id)
    return sum(end_badly(ledger, one, run) for one in left)


def end_badly(ledger: Ledger, run_id: RunId, run: dg.DagsterRun) -> int:
    if run.status in _CANCELLED:
        return len(cancel_run(ledger, run_id, by=f"a person in Dagster (run {run.run_id})"))
    return abandon_run(ledger, run_id, f"Dagster's run {run.run_id} is over")
