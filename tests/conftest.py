"""One Postgres server for the whole run, and a database for each test, cloned from a template with the schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from tests.databases import create_database, database_name, empty, temporary_database
from tests.factories import Flow
from tests.operator import month_clone, month_template
from tests.superuser import start_fast


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the server's own database."""
    home = tmp_path_factory.mktemp("odf")
    embedded = EmbeddedPostgres(home)
    try:
        # Nothing here must survive a crash of the machine, and most of a small test is waiting for the disk.
        yield start_fast(embedded, home, ("fsync", "synchronous_commit", "full_page_writes"))
    finally:
        embedded.stop()


@pytest.fixture(scope="session")
def template(server: str) -> str:
    url = create_database(server, "template1")
    with Ledger(url) as ledger:
        schema.install(ledger)
    return database_name(url)


@pytest.fixture
def empty_url(server: str) -> Iterator[str]:
    """A database without the schema."""
    yield from temporary_database(server, "template1")


@pytest.fixture
def url(server: str, template: str) -> Iterator[str]:
    """A database with the schema."""
    yield from temporary_database(server, template)


@pytest.fixture(scope="module")
def shared_database(server: str, template: str) -> Iterator[str]:
    yield from temporary_database(server, template)


@pytest.fixture
def emptied_url(shared_database: str) -> str:
    """One database for a whole file, emptied for each test: with many tests this is cheaper than cloning."""
    with psycopg.connect(shared_database, autocommit=True) as connection:
        empty(connection)
    return shared_database


@pytest.fixture(scope="module")
def shared_flow(shared_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with (
        Ledger(shared_database, actor="test") as ledger,
        psycopg.connect(shared_database, autocommit=True) as connection,
    ):
        yield Flow(ledger=ledger, url=shared_database, psql=connection, root=tmp_path_factory.mktemp("shared"))


@pytest.fixture
def emptied_flow(shared_flow: Flow, tmp_path: Path) -> Flow:
    """Its connections are shared too: a new one spends most of a small test on its first plans."""
    shared_flow.psql.execute("reset session authorization; reset all; unlisten *")
    empty(shared_flow.psql)
    return replace(shared_flow, root=tmp_path)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url, actor="test") as ledger:
        yield ledger


@pytest.fixture
def flow(ledger: Ledger, url: str, tmp_path: Path) -> Iterator[Flow]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield Flow(ledger=ledger, url=url, psql=connection, root=tmp_path)


# A month of chunks, for the tests of odf: made once for a file, and cloned for each test.


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def month_name(server: str, template: str, lake: Path) -> Iterator[str]:
    yield from month_template(server, template, lake)


@pytest.fixture
def month(server: str, month_name: str, lake: Path) -> Iterator[Flow]:
    yield from month_clone(server, month_name, lake)
