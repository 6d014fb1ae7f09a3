"""The framework's sensor factories, instantiated for the reference pipelines.

No sensors are declared yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagster import SensorDefinition

#: The sensors that the daemon ticks.
all_sensors: tuple[SensorDefinition, ...] = ()
