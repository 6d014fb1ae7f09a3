"""One Spark session for the whole run."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from opendataflow_dagster.warehouse.session import SparkSettings, session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """Shared by all tests of the process: starting Spark costs seconds."""
    # Tests that run for seconds gain nothing from the second compiler.
    quick = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    return session(SparkSettings(master="local[2]", conf=quick))
