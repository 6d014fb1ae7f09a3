"""The reference pipelines: plain functions over DataFrames, and SQL and scripts, each declared as a DataSet."""

from __future__ import annotations

from opendataflow_dagster import Declaration

from .flights import carrier_stats, clean_flights, raw_flights, raw_weather

#: One Dagster asset for each DataSet.
all_datasets: tuple[Declaration, ...] = (raw_flights, raw_weather, clean_flights, carrier_stats)
