"""The composition root: the only file that imports the pipelines and what they run on."""

from __future__ import annotations

import dagster as dg

from assets import all_assets
from resources import resources_for_environment
from sensors import all_sensors

defs = dg.Definitions(
    assets=[*all_assets],
    sensors=[*all_sensors],
    resources={**resources_for_environment()},
)
