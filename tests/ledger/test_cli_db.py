"""`odf db` and the settings it uses: text, JSON, exit codes, and never a password."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.ledger.settings import database_url
from opendataflow_dagster.model.errors import InvalidInput
from tests.effort import PATIENCE_SECONDS

PROJECT = Path(__file__).parents[2]
ODF = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()"]
NOBODY_ANSWERS = "postgresql://someone:s3cret@127.0.0.1:1/ledger"


def run(*words: str) -> Result:
    return CliRunner().invoke(odf, list(words), prog_name="odf")


def run_process(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ODF, *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment(), check=False
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture(scope="module")
def odf_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cli") / ".odf"
    yield folder
    EmbeddedPostgres(folder).stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def embedded(odf_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_HOME", str(odf_home))
    monkeypatch.delenv("ODF_DATABASE_URL", raising=False)


def test_the_embedded_server_starts_reports_and_stops(odf_home: Path) -> None:
    run("db", "stop")  # another test may have started it
    stopped = run("db", "status", "--json")
    assert (stopped.exit_code, json.loads(stopped.output)["running"]) == (1, False)

    started = run("db", "start", "--json")
    assert started.exit_code == 0, started.output
    assert json.loads(started.output)["data"] == str(odf_home / "postgres")

    url = run("db", "url").output.strip()
    password = (odf_home / "postgres.password").read_text().strip()
    port = json.loads(started.output)["port"]
    assert url == f"postgresql://odf:{password}@127.0.0.1:{port}/opendataflow"
    assert json.loads(run("db", "url", "--json").output) == {"url": url}

    for words in (["status"], ["status", "--json"], ["start"], ["start", "--json"]):
        printed = run("db", *words)
        assert printed.exit_code == 0
        assert str(port) in printed.output
        assert password not in printed.output

    assert run("db", "stop").output == f"Postgres in {odf_home / 'postgres'} stopped.\n"
    again = run("db", "stop", "--json")
    assert (again.exit_code, json.loads(again.output)["stopped"]) == (0, False)


def test_db_url_starts_the_server_and_closes_its_pipe(odf_home: Path) -> None:
    """`psql "$(odf db url)"` works with a stopped server: the shell waits until the pipe is closed."""
    run("db", "stop")
    result = run_process("db", "url")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == EmbeddedPostgres(odf_home).url()


def test_a_server_error_is_one_line_with_exit_code_135(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres/PG_VERSION").write_text("12\n")
    monkeypatch.setenv("ODF_HOME", str(tmp_path))
    result = run_process("db", "start")
    assert result.returncode == 135
    assert result.stderr.startswith("odf: the data folder ")
    assert len(result.stderr.splitlines()) == 1
    assert run("db", "status").exit_code == 1
    assert "PostgreSQL 12" in run("db", "status").output


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_a_configured_server_cannot_be_started_or_stopped(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_DATABASE_URL", NOBODY_ANSWERS)
    result = run("db", verb)
    assert result.exit_code == 64
    assert f"no embedded Postgres to {verb}" in result.stderr
    assert "s3cret" not in result.output


def test_db_status_of_a_server_never_shows_its_password(odf_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = EmbeddedPostgres(odf_home).start()
    monkeypatch.setenv("ODF_DATABASE_URL", url)
    answers = run("db", "status", "--json")
    assert answers.exit_code == 0
    assert json.loads(answers.output)["kind"] == "server"
    assert "is running (Postgres" in run("db", "status").output
    assert run("db", "url").output.strip() == url

    for wrong in (NOBODY_ANSWERS, url.replace("postgresql://odf:", "postgresql://odf:s3cret")):
        monkeypatch.setenv("ODF_DATABASE_URL", wrong)
        for words in (["status"], ["status", "--json"]):
            refused = run("db", *words)
            assert refused.exit_code == 1
            assert "s3cret" not in refused.output


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:s3cret@h/d",
        "u:s3cret@h/d",
        "host=h password=s3cret",
        "postgresql://u:s3cret/@h/d",
        "postgresql://u:s3cret@h:port/d",
        "postgresql://u:s3cret@h:99999/d",
        "postgresql://u:s3cret@[h/d",
    ],
)
def test_an_invalid_url_is_rejected_without_printing_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_DATABASE_URL", url)
    with pytest.raises(InvalidInput, match="ODF_DATABASE_URL") as caught:
        database_url()
    assert "s3cret" not in str(caught.value)
    for verb in ("status", "url", "start"):
        result = run("db", verb)
        assert result.exit_code == 64
        assert "s3cret" not in result.output


def test_an_unparsable_password_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_DATABASE_URL", "postgresql://u:s3cret%zz@127.0.0.1:1/d")
    result = run("db", "status")
    assert result.exit_code == 1
    assert "s3cret" not in result.output
