"""Where Dagster keeps its own tables: a schema of its own in the ledger's Postgres."""

from __future__ import annotations

import os

from ..ledger.database import Ledger
from ..ledger.reports import create_orchestrator_schema
from ..ledger.settings import DAGSTER_URL_VARIABLE, database_url


def prepare_storage(ledger: Ledger) -> None:
    with ledger.statement() as statement:
        create_orchestrator_schema(statement)
    # dagster.yaml reads it. It has a password in it: it goes through the environment, never through an argument.
    os.environ[DAGSTER_URL_VARIABLE] = storage_url(database_url())


def storage_url(url: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Ddagster"
