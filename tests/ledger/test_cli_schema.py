"""`odf schema`: install, verify and print."""

from __future__ import annotations

import json

import psycopg
import pytest
from click.testing import CliRunner, Result

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.ledger.schema_files import wanted
from tests.operator import impatient

NAMES = list(wanted())


def run(*arguments: str, url: str) -> Result:
    return CliRunner().invoke(odf, ["schema", *arguments], env={"ODF_DATABASE_URL": url})


def test_install_reports_migrations_once_then_up_to_date(empty_url: str) -> None:
    assert json.loads(run("install", "--json", url=empty_url).output) == {"dry_run": False, "applied": NAMES}
    assert run("install", url=empty_url).output == "The schema is up to date.\n"
    assert json.loads(run("install", "--json", url=empty_url).output) == {"dry_run": False, "applied": []}


def test_verify_exits_with_1_until_the_schema_is_installed(empty_url: str) -> None:
    before = run("verify", url=empty_url)
    assert before.exit_code == 1
    assert f"missing: {', '.join(NAMES)}; run: odf schema install" in before.output
    assert json.loads(run("verify", "--json", url=empty_url).output)["ok"] is False
    run("install", url=empty_url)
    after = run("verify", url=empty_url)
    assert (after.exit_code, after.output) == (0, f"The schema is complete ({len(NAMES)} migrations).\n")
    assert json.loads(run("verify", "--json", url=empty_url).output)["ok"] is True


def test_verify_names_a_migration_with_another_checksum(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update dataflow.migration set checksum = 'other' where name = %s", (NAMES[0],))
    result = run("verify", url=url)
    assert result.exit_code == 1
    assert (
        f"different from this version: {NAMES[0]}; use the version of odf that created this database" in result.output
    )
    assert run("install", url=url).exit_code == 134


def test_printed_sql_needs_no_database_and_installs_the_schema(empty_url: str) -> None:
    printed = run("sql", url="postgresql://nobody@127.0.0.1:1/nowhere")
    assert printed.exit_code == 0
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute(printed.output.encode())
    assert run("verify", url=empty_url).exit_code == 0
    assert run("sql", "dataset", url="").exit_code == 64


@pytest.mark.parametrize("command", ["install", "verify"])
def test_an_unreachable_server_is_one_line_with_exit_code_132(command: str) -> None:
    with impatient():
        result = run(command, url="postgresql://odf:s3cret@127.0.0.1:1/nowhere?connect_timeout=1")
    assert result.exit_code == 132
    assert "cannot be reached" in result.output
    assert "s3cret" not in result.output
    assert "Traceback" not in result.output


def test_a_dry_run_of_install_lists_but_applies_nothing(empty_url: str) -> None:
    assert run("install", "--dry-run", url=empty_url).output == f"Would apply {', '.join(NAMES)}.\n"
    rehearsed = json.loads(run("install", "--dry-run", "--json", url=empty_url).output)
    assert rehearsed == {"dry_run": True, "applied": NAMES}
    assert run("verify", url=empty_url).exit_code == 1
