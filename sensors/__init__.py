"""The framework's sensors, instantiated for these pipelines. All of them run unless somebody stops them in the UI."""

from __future__ import annotations

from dagster import SensorDefinition

from opendataflow_dagster.engine.dataset_graph import Catalogue
from opendataflow_dagster.orchestrator.files_sensor import files_sensor
from opendataflow_dagster.orchestrator.heal_sensor import heal_sensor
from opendataflow_dagster.orchestrator.planning_sensor import planning_sensor
from opendataflow_dagster.orchestrator.readiness_sensor import readiness_sensor
from opendataflow_dagster.orchestrator.run_status_sensors import run_endings


def all_sensors(catalogue: Catalogue) -> list[SensorDefinition]:
    """What the daemon ticks."""
    return [
        readiness_sensor(catalogue),
        planning_sensor(catalogue),
        heal_sensor(catalogue),
        files_sensor(catalogue),
        *run_endings(),
    ]
