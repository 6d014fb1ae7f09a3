"""OpenDataFlow on Dagster: a data-centric, transactional batch-ETL framework."""
