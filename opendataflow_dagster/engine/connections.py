"""What a process of an orchestrator connects to: one ledger and one Spark session, opened when first used."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ..ledger import embedded, settings
from ..ledger.database import Ledger as Ledger
from ..ledger.database import with_hosts_in_query
from ..ledger.reports import create_orchestrator_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_lock = threading.Lock()
_ledgers: dict[str, Ledger] = {}


def shared_ledger(*, connections: int, patience_seconds: float) -> Ledger:
    """The ledger of this process. The URL is looked up each time, because an embedded server may have moved."""
    url = settings.database_url()
    with _lock:
        if url not in _ledgers:
            patience = timedelta(seconds=patience_seconds)
            _ledgers[url] = Ledger(url, actor="dagster", connections=connections, patience=patience)
        return _ledgers[url]


def close_ledgers() -> None:
    """The next caller opens a new connection."""
    with _lock:
        while _ledgers:
            _ledgers.popitem()[1].close()


def spark_session(extra_conf: Mapping[str, str]) -> SparkSession:
    """The Spark session of this process, as configured by ODF_SPARK_*."""
    from ..warehouse.session import SparkSettings, session

    configured = SparkSettings.from_environment()
    conf = {**configured.conf, **extra_conf}
    return session(SparkSettings(master=configured.master, remote=configured.remote, conf=conf))


def prepare_dagster_storage(ledger: Ledger) -> None:
    """Give Dagster a schema of its own in the ledger's Postgres, and its URL to dagster.yaml."""
    with ledger.statement() as statement:
        create_orchestrator_schema(statement)
    # It contains a password, so it is passed in the environment and never as an argument.
    os.environ[settings.DAGSTER_URL_VARIABLE] = dagster_storage_url(settings.database_url())


def dagster_storage_url(url: str) -> str:
    url = with_hosts_in_query(url)
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Ddagster"


def open_ledger(actor: str) -> Ledger:
    return Ledger(settings.database_url(), actor=actor)


def keep_embedded_postgres_alive() -> None:
    """Start the embedded Postgres if it is the configured one and does not run. EmbeddedPostgresError: it cannot."""
    if settings.configured_url() is None:
        embedded.EmbeddedPostgres(settings.home()).start()


def home() -> Path:
    return settings.home()
