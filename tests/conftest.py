"""A real Postgres for the whole run, and a fresh database for each test, cloned from one with the schema."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from pyspark.sql import SparkSession

from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger, in_database
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.warehouse.session import SparkSettings, session
from tests.dagster_project import Project, project_on, write_dagster_yaml
from tests.dagster_server import ROOT, Server, dagster_server
from tests.factories import Flow

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the server's own database."""
    embedded = EmbeddedPostgres(tmp_path_factory.mktemp("odf"))
    try:
        yield embedded.start()
    finally:
        embedded.stop()


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One for all tests of the process: starting Spark costs seconds."""
    # The second compiler is not worth its work for tests of seconds.
    quick = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    return session(SparkSettings(master="local[2]", conf=quick))


@pytest.fixture(scope="session")
def template(server: str) -> str:
    name = "odf_template"
    _admin(server, f'create database "{name}"')
    with Ledger(in_database(server, name)) as ledger:
        schema.install(ledger)
    return name


@pytest.fixture
def empty_url(server: str) -> Iterator[str]:
    """A database without the schema."""
    yield from _database(server, "template1")


@pytest.fixture
def url(server: str, template: str) -> Iterator[str]:
    """A database with the schema."""
    yield from _database(server, template)


@pytest.fixture(scope="module")
def shared_database(server: str, template: str) -> Iterator[str]:
    yield from _database(server, template)


@pytest.fixture
def emptied_url(shared_database: str) -> str:
    """One database for a whole file, emptied for each test: where there are many, a clone for each costs more."""
    with psycopg.connect(shared_database, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        tables = connection.execute(
            "select format('delete from dataflow.%I', tablename) from pg_tables"
            " where schemaname = 'dataflow' and tablename not in ('migration', 'status_transition')"
        )
        connection.execute("; ".join(row[0] for row in tables).encode())
    return shared_database


@pytest.fixture(scope="session")
def dagster_template(server: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The ledger's schema and Dagster's own tables: making them costs seconds, cloning them does not."""
    name = "odf_dagster_template"
    _admin(server, f'create database "{name}" template "{template}"')
    url, home = in_database(server, name), tmp_path_factory.mktemp("dagster")
    _admin(url, "create schema dagster")
    write_dagster_yaml(url, home)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.get_runs(limit=1)
    return name


@pytest.fixture
def project(
    server: str, dagster_template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> Iterator[Project]:
    """A project of Dagster on a database of its own, in this process."""
    for url in _database(server, dagster_template):
        monkeypatch.setenv("ODF_DATABASE_URL", url)
        monkeypatch.setenv("ODF_SPARK_MASTER", "local[2]")
        monkeypatch.setenv("ODF_SPARK_CONF", '{"spark.sql.shuffle.partitions": "2"}')
        with project_on(url, tmp_path, tmp_path / "dagster_home") as project:
            yield project


@pytest.fixture(scope="session")
def served(server: str, dagster_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A web server and a daemon over the chain of tests/pipelines, for all tests of the process."""
    for url in _database(server, dagster_template):
        pipeline = Path(__file__).parent / "pipelines" / "chain.py"
        with dagster_server(url, tmp_path_factory.mktemp("served"), pipeline) as running:
            yield running


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a browser. Where there must be one, its absence is a failure: a test left out says nothing."""
    found = subprocess.run([ROOT / "bin" / "browser"], capture_output=True, text=True, check=False)
    if found.returncode == 77:
        pytest.skip(found.stderr.strip())
    assert found.returncode == 0, f"no browser: {found.stderr}"
    return found.stdout.strip()


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url, actor="test") as ledger:
        yield ledger


@pytest.fixture
def flow(ledger: Ledger, url: str, tmp_path: Path) -> Iterator[Flow]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield Flow(ledger=ledger, url=url, psql=connection, root=tmp_path)


def _database(server: str, template: str) -> Iterator[str]:
    name = f"odf_test_{next(_numbers)}"
    _admin(server, f'create database "{name}" template "{template}"')
    try:
        yield in_database(server, name)
    finally:
        _admin(server, f'drop database "{name}" with (force)')


def _admin(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.encode())
