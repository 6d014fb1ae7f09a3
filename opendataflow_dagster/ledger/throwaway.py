"""Temporary ledgers for tests: one embedded server for the process, and a new database for each caller."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from . import schema
from .database import Ledger, in_database
from .embedded import EmbeddedPostgres

_TEMPLATE = "odf_template"
_numbers = count(1)


@contextmanager
def throwaway_database() -> Iterator[str]:
    """The URL of a database with the ledger's schema and no data."""
    server, name = _server(), f"odf_{next(_numbers)}"
    _run(server, "create database {} template {}", name, _TEMPLATE)
    try:
        yield in_database(server, name)
    finally:
        _run(server, "drop database {} with (force)", name)


@cache
def _server() -> str:
    """Starting it and installing the schema takes seconds; cloning the template does not."""
    home = Path(tempfile.mkdtemp(prefix="odf-"))
    embedded = EmbeddedPostgres(home)

    def end() -> None:
        embedded.stop()
        shutil.rmtree(home, ignore_errors=True)

    atexit.register(end)
    server = embedded.start()
    _run(server, "create database {}", _TEMPLATE)
    with Ledger(in_database(server, _TEMPLATE)) as ledger:
        schema.install(ledger)
    return server


def _run(server: str, statement: str, *names: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in names)))
