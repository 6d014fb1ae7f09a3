"""What the pipelines run on, chosen by environment variables alone: on one machine, with a server, or on a cluster.

ODF_DATABASE_URL     the ledger; without it the embedded Postgres, which starts on first use
ODF_WAREHOUSE        the folder or URL of the data; without it a folder of the project
ODF_SPARK_MASTER     local[*] (the default), spark://host:7077, yarn, k8s://...; ODF_SPARK_REMOTE: sc://host:15002
ODF_CHUNKS_AT_ONCE   how many chunks a run makes at a time; without it two per core
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from opendataflow_dagster import LedgerResource, SparkResource
from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.orchestrator.definitions import warehouse_root


@dataclass(frozen=True, kw_only=True)
class Environment:
    ledger: LedgerResource
    spark: SparkResource
    warehouse: str
    chunks_at_once: int


def environment() -> Environment:
    return Environment(
        ledger=LedgerResource(),
        spark=SparkResource(),
        warehouse=warehouse_root(),
        chunks_at_once=_number("ODF_CHUNKS_AT_ONCE"),
    )


def _number(variable: str) -> int:
    text = os.environ.get(variable, "").strip() or "0"
    if not text.isdecimal():
        raise InvalidInput(f"{variable} is {text!r}; give a number, or unset it to use every core")
    return int(text)
