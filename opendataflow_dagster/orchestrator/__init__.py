"""All Dagster code of the framework."""
