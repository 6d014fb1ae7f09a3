"""Conventions that every command of `odf` follows."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from opendataflow_dagster.cli import output
from opendataflow_dagster.cli.main import COMMANDS, SECTIONS, odf
from opendataflow_dagster.cli.options import CONFIRM_ABOVE, Change
from opendataflow_dagster.cli.parsing import Moment
from opendataflow_dagster.cli.reference import leaves, reference
from opendataflow_dagster.model.errors import InvalidInput
from tests.factories import key

PROJECT = Path(__file__).parents[2]
LEAVES = [pytest.param(words, command, id=" ".join(words[1:])) for words, command in leaves(odf)]

#: They print a program, or start one.
WITHOUT_JSON = {"schema sql", "completion", "db shell", "dev"}
#: They do not change the ledger.
READING = {*SECTIONS["Inspect"], "chunk show", "completion", "db start", "db stop", "db status", "db url"}
READING |= {"dev", "schema verify", "schema sql", "db shell", "report", "metrics", "check", "table refresh"}
READING |= {"secret encrypt", "secret decrypt", "secret verify"}
READING |= {f"{noun} {verb}" for noun in ("dataset", "job") for verb in ("list", "show", "export")}


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_every_command_has_help_with_an_example(words: tuple[str, ...], command: click.Command) -> None:
    result = CliRunner().invoke(odf, [*words[1:], "--help"], prog_name="odf")
    assert result.exit_code == 0
    _, _, examples = result.output.partition("Example:")
    assert " ".join(words) in examples
    assert command.get_short_help_str()


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_every_command_has_json_and_every_change_a_dry_run(words: tuple[str, ...], command: click.Command) -> None:
    options = {option for parameter in command.params for option in parameter.opts}
    assert ("--json" in options) is (" ".join(words[1:]) not in WITHOUT_JSON)
    assert ("--dry-run" in options) is (" ".join(words[1:]) not in READING)


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_every_command_rejects_unknown_options_with_64(words: tuple[str, ...], command: click.Command) -> None:
    result = CliRunner().invoke(odf, [*words[1:], "--no-such-option"], prog_name="odf")
    assert result.exit_code == 64
    assert result.stdout == ""
    assert "--no-such-option" in result.stderr


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_a_misspelt_command_or_option_gives_the_nearest_ones(words: tuple[str, ...], command: click.Command) -> None:
    *group, name = words[1:]
    error = CliRunner().invoke(odf, [*group, f"{name}{name[-1]}"], prog_name="odf").stderr
    assert f"has no command {name}{name[-1]}; did you mean {name}" in error
    for option in (name for parameter in command.params for name in parameter.opts if name.startswith("--")):
        error = CliRunner().invoke(odf, [*words[1:], f"{option}{option[-1]}"], prog_name="odf").stderr
        assert f"has no option {option}{option[-1]}; did you mean {option}" in error


def commands_in(text: str) -> list[str]:
    """Everything that starts with `odf `, in a code block or between backticks."""
    blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    result = [match[1] for line in lines if (match := re.search(r"(?:^|\s\s)(odf [a-z].*)", line))]
    return [*result, *re.findall(r"`(odf [^`]+)`", text)]


def refused(line: str) -> str | None:
    """Why `odf` would reject this command line; None: it would not."""
    words = itertools.takewhile(lambda word: word not in ("|", ">", "&&", "#"), shlex.split(line, comments=True)[1:])
    command: click.Command = odf
    context = click.Context(odf, info_name="odf", **odf.context_settings)
    left = list(words)
    try:
        while isinstance(command, click.Group) and left:
            if (subcommand := command.get_command(context, left[0])) is None:
                return f"there is no {left[0]}"
            command, left = subcommand, left[1:]
        if not isinstance(command, click.Group):
            command.make_parser(click.Context(command, parent=context, **command.context_settings)).parse_args(left)
    except click.UsageError as error:
        return error.message
    return None


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_every_help_example_parses(words: tuple[str, ...], command: click.Command) -> None:
    _, _, examples = (command.help or "").partition("Example:")
    lines = [line.strip() for line in examples.splitlines() if line.strip().startswith("odf ")]
    assert {line: refused(line) for line in lines if refused(line)} == {}


@pytest.mark.parametrize("page", sorted((PROJECT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_every_command_in_the_docs_parses(page: Path) -> None:
    if page.name == "cli.md":
        return  # generated
    lines = [line for line in commands_in(page.read_text()) if "..." not in line]
    assert {line: refused(line) for line in lines if refused(line)} == {}


def test_a_wrong_command_in_the_docs_would_fail_the_test() -> None:
    assert refused("odf resbumit flights 1") == "there is no resbumit"
    assert refused("odf resubmit flights --al 1") is not None
    assert refused("odf resubmit flights 1 --yes | cat") is None


def test_help_imports_neither_dagster_nor_spark_nor_a_driver() -> None:
    script = (
        "import sys; from opendataflow_dagster.cli.reference import leaves, odf;"
        "odf(['--help'], standalone_mode=False);"
        "assert 'opendataflow_dagster.cli.status' not in sys.modules, 'help loads no command';"
        "assert len(list(leaves(odf))) > 40;"
        "print([m for m in ('dagster', 'pyspark', 'psycopg', 'rich', 'sqlalchemy', 'fsspec') if m in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )
    assert printed.stdout.splitlines()[-1] == "[]"
    for name in COMMANDS:
        assert f"  {name} " in printed.stdout


def test_the_cli_reference_is_up_to_date() -> None:
    written = (PROJECT / "docs/cli.md").read_text()
    assert written == reference(), "run: python -m opendataflow_dagster.cli.reference > docs/cli.md"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    result = CliRunner().invoke(odf, ["completion", shell], prog_name="odf")
    assert result.exit_code == 0
    assert "_ODF_COMPLETE" in result.output
    assert CliRunner().invoke(odf, ["completion", "dos"]).exit_code == 64


def test_changing_many_chunks_needs_confirmation() -> None:
    change = Change(by=None, reason="", dry_run=False, yes=False, json_wanted=False)
    change.confirm(CONFIRM_ABOVE, "resubmit 20 chunks")
    with pytest.raises(InvalidInput, match="resubmit 700 chunks; check with --dry-run, then pass --yes"):
        change.confirm(700, "resubmit 700 chunks")
    Change(by=None, reason="", dry_run=False, yes=True, json_wanted=False).confirm(700, "resubmit 700 chunks")


# --- output


def test_a_table_in_a_pipe_is_plain_and_never_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["name", "count"], [["a" * 200, "7"], [("b", "red"), "1,000"]], right=["count"])
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "name" + " " * 196 + "  count"
    assert second == "a" * 200 + "      7"
    assert third == "b" + " " * 199 + "  1,000"


def test_a_table_on_a_terminal_has_colours_and_keeps_brackets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    output.table(["dataid", "status"], [["[red]1[/red]", output.status("FAILED")]])
    printed = capsys.readouterr().out
    assert "[red]1[/red]" in printed
    assert "\x1b[31mFAILED" in printed


def test_names_dataids_and_codes_stay_whole_on_a_narrow_terminal_and_texts_give_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    name, dataid, code = "clean_flights_by_carrier_and_day", "2024-01-05 a b", "DATA_NOT_READY"
    reason = "raw_flights_by_carrier_and_day/2024-01-05 is RUNNING; wait for its producer " + "/mnt" + "/folder" * 20
    row = [name, code, dataid, "2024-01-05 14:03 (3 h ago)", reason]
    output.table(["DATASET", "code", "dataid", "since", "reason"], [row])
    printed = capsys.readouterr().out
    for whole in (name, code, dataid, "2024-01-05", "RUNNING;"):
        assert whole in printed
    assert max(map(len, printed.splitlines())) < 150
    output.table(["dataid", "reason"], [[dataid, reason]])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "".join(line[len(dataid) + 1 :].strip() for line in printed.splitlines()[3:]).count("/folder") == 20


def test_a_name_wider_than_the_terminal_is_not_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    output.table(["DATASET", "reason"], [["n" * 120, "it waits"]])
    assert "n" * 120 in capsys.readouterr().out


def test_control_characters_are_never_printed() -> None:
    assert output.printable("bad\x1b[2J mount\n\tat line 3\u202e") == r"bad\x1b[2J mount at line 3\u202e"
    assert output.printable("Zürich  15 °C") == "Zürich  15 °C"


def test_times_are_local_with_an_age_in_text_and_exact_in_json() -> None:
    now = datetime(2024, 1, 5, 15, 0, tzinfo=UTC)
    at = now - timedelta(hours=3, minutes=4)
    assert output.moment(at, now=now) == f"{at.astimezone():%Y-%m-%d %H:%M} (3 h ago)"
    assert output.moment(now + timedelta(minutes=10), now=now).endswith("(in 10 min)")
    assert [output.span(timedelta(seconds=seconds)) for seconds in (0.25, 12, 119, 120, 7_199, 7_200, 172_800)] == [
        "0.2 s", "12 s", "119 s", "2 min", "119 min", "2 h", "2 d",
    ]  # fmt: skip
    printed = json.dumps(output.jsonable({"at": at, "took": timedelta(seconds=1.5), "key": key("raw/1")}))
    assert json.loads(printed) == {
        "at": "2024-01-05T11:56:00+00:00",
        "took": 1.5,
        "key": {"datasetid": "raw", "dataid": "1"},
    }


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30min", 1_800), ("3h", 10_800), ("2d", 172_800)])
def test_a_time_can_be_given_as_an_age(text: str, seconds: int) -> None:
    passed = datetime.now(UTC) - Moment().convert(text, None, None)
    assert abs(passed.total_seconds() - seconds) < 5


def test_a_time_can_be_given_by_the_local_clock() -> None:
    assert Moment().convert("2024-01-05 14:00", None, None) == datetime.fromisoformat("2024-01-05T14:00").astimezone()
    for wrong in ("yesterday", "3 apples", "2024-13-01", "99999999999h", "999999999d", ""):
        with pytest.raises(click.UsageError, match="is not a valid time"):
            Moment().convert(wrong, None, None)
