"""The sensors of these pipelines: the framework's own. All of them run unless a person stops them in the UI."""

from __future__ import annotations

from opendataflow_dagster.orchestrator.sensors import all_sensors as all_sensors
