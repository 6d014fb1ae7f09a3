"""The sensors that a code location needs."""

from __future__ import annotations

import dagster as dg

from ..engine.dataset_graph import DatasetGraph
from .files_sensor import files_sensor
from .heal_sensor import heal_sensor
from .planning_sensor import planning_sensor
from .readiness_sensor import readiness_sensor
from .run_status_sensors import run_status_sensors


def all_sensors(graph: DatasetGraph) -> list[dg.SensorDefinition]:
    return [
        readiness_sensor(graph),
        planning_sensor(graph),
        heal_sensor(graph),
        files_sensor(graph),
        *run_status_sensors(),
    ]
