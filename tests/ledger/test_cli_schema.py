"""`odf schema`, as an operator uses it."""

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


def test_install_says_what_it_applied_and_then_that_there_is_nothing_to_do(empty_url: str) -> None:
    assert json.loads(run("install", "--json", url=empty_url).output) == {"dry_run": False, "applied": NAMES}
    assert run("install", url=empty_url).output == "The schema is up to date.\n"
    assert json.loads(run("install", "--json", url=empty_url).output) == {"dry_run": False, "applied": []}


def test_verify_exits_with_1_and_the_next_step_until_the_schema_is_there(empty_url: str) -> None:
    before = run("verify", url=empty_url)
    assert before.exit_code == 1
    assert f"missing: {', '.join(NAMES)}; run `odf schema install`" in before.output
    assert json.loads(run("verify", "--json", url=empty_url).output)["ok"] is False
    run("install", url=empty_url)
    after = run("verify", url=empty_url)
    assert (after.exit_code, after.output) == (0, f"The schema is whole ({len(NAMES)} migrations).\n")
    assert json.loads(run("verify", "--json", url=empty_url).output)["ok"] is True


def test_verify_names_a_migration_that_was_made_from_another_file(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update dataflow.migration set checksum = 'other' where name = %s", (NAMES[0],))
    result = run("verify", url=url)
    assert result.exit_code == 1
    assert f"other than in this version: {NAMES[0]}; install the version that made this database" in result.output
    assert run("install", url=url).exit_code == 134


def test_the_printed_sql_needs_no_database_and_installs_the_schema(empty_url: str) -> None:
    printed = run("sql", url="postgresql://nobody@127.0.0.1:1/nowhere")
    assert printed.exit_code == 0
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute(printed.output.encode())
    assert run("verify", url=empty_url).exit_code == 0
    assert run("sql", "dataset", url="").exit_code == 64


@pytest.mark.parametrize("command", ["install", "verify"])
def test_a_server_that_is_not_there_is_one_sentence_and_exit_code_132(command: str) -> None:
    with impatient():
        result = run(command, url="postgresql://odf:s3cret@127.0.0.1:1/nowhere?connect_timeout=1")
    assert result.exit_code == 132
    assert "cannot be reached" in result.output
    assert "s3cret" not in result.output
    assert "Traceback" not in result.output


def test_a_dry_run_of_install_says_what_it_would_apply_and_applies_nothing(empty_url: str) -> None:
    assert run("install", "--dry-run", url=empty_url).output == f"Would apply {', '.join(NAMES)}.\n"
    rehearsed = json.loads(run("install", "--dry-run", "--json", url=empty_url).output)
    assert rehearsed == {"dry_run": True, "applied": NAMES}
    assert run("verify", url=empty_url).exit_code == 1
