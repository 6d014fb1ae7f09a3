"""The driver's pool logs what we handle: it never reaches the stderr of a program."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.effort import PATIENCE_SECONDS

#: Loses all connections several times, and then cannot connect at all.
PROGRAM = """
import logging
from contextlib import suppress
from datetime import timedelta
import psycopg
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.settings import database_url
from opendataflow_dagster.model.errors import LedgerUnavailable

{configure}
url = database_url()
with Ledger(url, connections=2) as ledger:
    for _ in range(3):
        with suppress(LedgerUnavailable), ledger.statement() as statement:
            statement.rows("recorded_migrations")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
nowhere = Ledger("postgresql://ada:s3cret@127.0.0.1:1/x", patience=timedelta(seconds=0.5))
with nowhere, suppress(LedgerUnavailable), nowhere.statement() as statement:
    statement.rows("recorded_migrations")
logging.getLogger("theirs").warning("their own warning")
"""


@pytest.mark.parametrize(
    "configure",
    [
        "",
        "logging.basicConfig(level=logging.DEBUG, format='%(message)s')",
        "import logging.config\n"
        "handlers = {'err': {'class': 'logging.StreamHandler'}}\n"
        "root = {'level': 'DEBUG', 'handlers': ['err']}\n"
        "rest = {'version': 1, 'disable_existing_loggers': False}\n"
        "logging.config.dictConfig({**rest, 'handlers': handlers, 'root': root})",
    ],
    ids=["no logging", "basicConfig", "dictConfig"],
)
def test_warnings_of_the_drivers_pool_never_reach_stderr(url: str, configure: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{configure}", configure)],
        env={**os.environ, "ODF_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "their own warning\n")
