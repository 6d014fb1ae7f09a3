"""Where Dagster keeps its own tables: a schema of its own in the ledger's Postgres."""

from __future__ import annotations

import os

from ..ledger.database import Ledger
from ..ledger.settings import DAGSTER_URL_VARIABLE, database_url


def prepare_storage(ledger: Ledger) -> None:
    """Dagster makes its tables, but not the schema that they live in."""
    with ledger.statement() as statement:
        statement.run("make_dagster_schema")
    # dagster.yaml reads it. It has a password in it: it goes through the environment, never through an argument.
    os.environ[DAGSTER_URL_VARIABLE] = storage_url(database_url())


def storage_url(url: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Ddagster"
