"""A Dagster instance for each test, on a database cloned from a template with Dagster's tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from tests.dagster_project import Project, project_on, write_dagster_yaml
from tests.databases import create_database, database_name, execute, temporary_database
from tests.spark.conftest import spark as spark


@pytest.fixture(scope="session")
def dagster_template(server: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The ledger's schema and Dagster's own tables. Creating them costs seconds, cloning them does not."""
    url, home = create_database(server, template), tmp_path_factory.mktemp("dagster")
    execute(url, "create schema dagster")
    write_dagster_yaml(url, home)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.get_runs(limit=1)
    return database_name(url)


@pytest.fixture
def project(
    server: str, dagster_template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> Iterator[Project]:
    """A Dagster project on its own database, in this process."""
    for url in temporary_database(server, dagster_template):
        monkeypatch.setenv("ODF_DATABASE_URL", url)
        monkeypatch.setenv("ODF_SPARK_MASTER", "local[2]")
        monkeypatch.setenv("ODF_SPARK_CONF", '{"spark.sql.shuffle.partitions": "2"}')
        with project_on(url, tmp_path, tmp_path / "dagster_home") as project:
            yield project
