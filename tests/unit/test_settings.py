"""Where the ledger's URL and home come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from opendataflow_dagster.ledger.psql import psql
from opendataflow_dagster.ledger.settings import configured_url, home


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgresql://u:p@h:5432/d?sslmode=require", "postgresql://u:p@h:5432/d?sslmode=require"),
        ("postgres://u:p@h/d", "postgresql://u:p@h/d"),
        ("postgresql://u:p@a:5432,b:5433/d", "postgresql://u:p@a:5432,b:5433/d"),
        ("postgresql:///d?host=/run/postgresql", "postgresql:///d?host=/run/postgresql"),
        ("  ", None),
    ],
)
def test_a_configured_url_gets_a_scheme_that_sqlalchemy_accepts(
    given: str, used: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODF_DATABASE_URL", given)
    assert configured_url() == used


@pytest.mark.parametrize("mark", ["pyproject.toml", "workspace.yaml", ".odf"])
def test_home_is_in_the_nearest_parent_project(mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ODF_HOME", raising=False)
    (tmp_path / "pyproject.toml").touch()
    project = tmp_path / "project"
    below = project / "a" / "b"
    below.mkdir(parents=True)
    (project / mark).mkdir() if mark == ".odf" else (project / mark).touch()
    monkeypatch.chdir(below)
    assert home() == project / ".odf"


def test_home_without_a_project_is_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ODF_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert home() == tmp_path / ".odf"


def test_odf_home_takes_precedence_and_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ODF_HOME", "elsewhere")
    assert home() == tmp_path / "elsewhere"


def test_psql_is_started_with_every_setting_of_the_url_and_no_password_in_an_argument() -> None:
    _, environment = psql("postgresql://ada:s3cret@there:5433/odf?sslmode=verify-full&sslrootcert=/ca.pem")
    wanted = {"PGHOST": "there", "PGPORT": "5433", "PGUSER": "ada", "PGPASSWORD": "s3cret", "PGDATABASE": "odf"}
    tls = {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "/ca.pem"}
    assert wanted | tls == {name: environment[name] for name in wanted | tls}
