"""The framework's sensors, instantiated for these pipelines. All of them run unless somebody stops them in the UI."""

from __future__ import annotations

from dagster import SensorDefinition

from opendataflow_dagster.orchestrator.catalogue import Catalogue
from opendataflow_dagster.orchestrator.endings import run_endings
from opendataflow_dagster.orchestrator.files import files_sensor
from opendataflow_dagster.orchestrator.heal import heal_sensor
from opendataflow_dagster.orchestrator.planning import planning_sensor
from opendataflow_dagster.orchestrator.readiness import readiness_sensor


def all_sensors(catalogue: Catalogue) -> list[SensorDefinition]:
    """What the daemon ticks."""
    return [
        readiness_sensor(catalogue),
        planning_sensor(catalogue),
        heal_sensor(catalogue),
        files_sensor(catalogue),
        *run_endings(),
    ]
