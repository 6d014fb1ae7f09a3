"""Exit codes and error texts of `odf` that need no server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from opendataflow_dagster.cli.groups import OdfGroup
from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.model.errors import ClaimLost
from tests.effort import PATIENCE_SECONDS

PROJECT = Path(__file__).parents[2]
ODF = [sys.executable, "-c", "from opendataflow_dagster.cli.main import main; main()"]


def run(*words: str) -> Result:
    return CliRunner().invoke(odf, list(words), prog_name="odf")


def run_process(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ODF, *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment(), check=False
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.parametrize(
    "words", [["no-such-command"], ["db", "no-such-command"], ["db", "start", "--no-such-option"], ["db"], []]
)
def test_a_usage_error_exits_with_64(words: list[str]) -> None:
    result = run_process(*words)
    assert result.returncode == 64
    assert "Usage: odf" in result.stderr
    assert result.stdout == ""


def test_the_version_is_printed() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.output.startswith("odf ")


def group_that_raises(error: BaseException) -> click.Group:
    @click.group(cls=OdfGroup)
    @click.option("--debug", is_flag=True)
    def group(debug: bool) -> None:
        pass

    @group.command()
    def fail() -> None:
        raise error

    return group


def test_a_known_error_is_one_line_with_its_exit_code() -> None:
    result = CliRunner().invoke(group_that_raises(ClaimLost([], "publish")), ["fail"])
    assert result.exit_code == 129
    assert result.stdout == ""
    assert result.stderr.startswith("odf: cannot publish")
    assert len(result.stderr.splitlines()) == 1


def test_an_unexpected_error_is_shown_only_with_debug() -> None:
    group = group_that_raises(ValueError("the password is s3cret"))
    plain = CliRunner().invoke(group, ["fail"])
    assert plain.exit_code == 128
    assert plain.stderr == "odf: unexpected ValueError; rerun with `odf --debug` for a traceback\n"
    debug = CliRunner().invoke(group, ["--debug", "fail"])
    assert debug.exit_code == 128
    assert "Traceback" in debug.stderr


def test_an_interrupt_exits_with_128_not_1() -> None:
    result = CliRunner().invoke(group_that_raises(KeyboardInterrupt()), ["fail"])
    assert result.exit_code == 128
    assert "interrupted" in result.stderr
