"""The files sensor: makes chunks FAILED whose files are gone, checking some versions at each tick."""

from __future__ import annotations

import dagster as dg

from ..engine.dataset_graph import DatasetGraph
from ..engine.missing_files import check_files
from ..model.text import listing
from .resources import LedgerResource
from .tick import state_of, tick

_SHOWN = 3


def files_sensor(graph: DatasetGraph, *, interval_seconds: int = 15) -> dg.SensorDefinition:
    @dg.sensor(
        name="files",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Makes chunks FAILED whose files are gone.",
    )
    def evaluate(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
        checked = check_files(ledger.ledger, graph, int(state_of(context.cursor) or 0))
        if checked.unknown:
            causes = listing(list(dict.fromkeys(checked.unknown)), _SHOWN, "; ")
            raise dg.Failure(
                f"the files of {len(checked.unknown)} versions could not be checked: {causes}"
                f"; mount the root, or let the daemon's user read it. Their chunks are unchanged"
            )
        return tick(f"files gone: {checked.gone}", state=str(checked.position))

    return evaluate
