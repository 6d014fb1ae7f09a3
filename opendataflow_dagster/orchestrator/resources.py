"""The Dagster resources of runs and sensors: the ledger and Spark, one of each in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from ..engine.connections import Ledger, shared_ledger, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LedgerResource(dg.ConfigurableResource[Ledger]):
    """The ledger of ODF_DATABASE_URL, or the embedded one, which starts on first use."""

    #: How many connections a process may open: one for each chunk at once, and some for leases and events.
    connections: int = 16
    #: How long to wait for a connection before it is an error.
    patience_seconds: float = 10.0

    @property
    def ledger(self) -> Ledger:
        """Shared by the whole process: sensors tick often, and connecting costs more than their queries."""
        return shared_ledger(connections=self.connections, patience_seconds=self.patience_seconds)


class SparkResource(LazyPySparkResource):
    """Dagster's lazy Spark resource, over the one warm session of the process. ODF_SPARK_* configures it."""

    spark_config: dict[str, str] = Field(default_factory=dict)

    @property
    def spark_session(self) -> SparkSession:
        return spark_session(self.spark_config)
