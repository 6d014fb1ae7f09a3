"""Databases for tests, cloned from a template on the test server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg

from opendataflow_dagster.ledger.database import in_database

_numbers = itertools.count(1)


def create_database(server: str, template: str) -> str:
    """Return the URL of the new database."""
    name = f"odf_test_{next(_numbers)}"
    execute(server, f'create database "{name}" template "{template}"')
    return in_database(server, name)


def temporary_database(server: str, template: str) -> Iterator[str]:
    url = create_database(server, template)
    try:
        yield url
    finally:
        execute(server, f'drop database "{database_name(url)}" with (force)')


def database_name(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())
