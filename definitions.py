"""The composition root: the only file that imports the pipelines and what they run on."""

from __future__ import annotations

from assets import all_datasets
from opendataflow_dagster import build_definitions
from resources import environment
from sensors import all_sensors

_here = environment()

defs = build_definitions(
    all_datasets,
    ledger=_here.ledger,
    spark=_here.spark,
    warehouse=_here.warehouse,
    chunks_at_once=_here.chunks_at_once,
    sensors=all_sensors,
)
