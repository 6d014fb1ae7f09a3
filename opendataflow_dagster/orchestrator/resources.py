"""What runs and sensors work with: the ledger and Spark, one of each for a process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from ..ledger.database import Ledger
from ..ledger.settings import database_url
from ..warehouse.session import SparkSettings, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_lock = threading.Lock()
_ledgers: dict[str, Ledger] = {}


def close_ledgers() -> None:
    """The next one who asks gets a new connection."""
    with _lock:
        while _ledgers:
            _ledgers.popitem()[1].close()


class LedgerResource(dg.ConfigurableResource[Ledger]):
    """The ledger of ODF_DATABASE_URL, or the embedded one, which starts on first use."""

    #: How many connections a process may open: one for each chunk at once, and some for leases and events.
    connections: int = 16
    #: How long to wait for a connection before it is an error.
    patience_seconds: float = 10.0

    @property
    def ledger(self) -> Ledger:
        """One for the process: sensors tick often, and a connection costs more than what they ask.

        Where the database is, is asked each time: an embedded one that was killed starts again.
        """
        url = database_url()
        with _lock:
            if url not in _ledgers:
                patience = timedelta(seconds=self.patience_seconds)
                _ledgers[url] = Ledger(url, actor="dagster", connections=self.connections, patience=patience)
            return _ledgers[url]


class SparkResource(LazyPySparkResource):
    """Dagster's lazy Spark resource over the project's one warm session; where it runs is said by ODF_SPARK_*."""

    spark_config: dict[str, str] = Field(default_factory=dict)

    @property
    def spark_session(self) -> SparkSession:
        given = SparkSettings.from_environment()
        conf: Mapping[str, str] = {**given.conf, **self.spark_config}
        return session(SparkSettings(master=given.master, remote=given.remote, conf=conf))
