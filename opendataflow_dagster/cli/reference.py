"""Writes docs/cli.md from the commands themselves: `python -m opendataflow_dagster.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import click

from .main import SECTIONS, odf

_INTRODUCTION = """\
# The command line

Made from the commands by `python -m opendataflow_dagster.cli.reference > docs/cli.md`; a test keeps it current.

A noun and a verb, or a verb alone. Every command has `--help` with examples, and `--json` where there is something to
say. What changes something has `--dry-run` (the verb does its work in a transaction that is rolled back, so it says
exactly what would happen), `--as` and `--reason` for the history, and asks before it changes many chunks unless you
say `--yes`. On a terminal there are tables and colours, in a pipe plain text. Times are those of your clock; JSON has
them in UTC, durations in seconds, and names in full.

| exit code | meaning |
|---|---|
| 0 | it worked, or the answer is yes |
| 1 | the answer is no, or not ready |
| 2 | `odf run`: never ready, because attempts are exceeded |
| 3 | `odf run`: not scheduled, because the Job is paused |
| 64 | the command was written wrongly, or names something that is not there |
| 128 | it failed, was interrupted, or its output was not read to the end |
| 129 | the claim was lost |
| 130 | the manifest is not valid |
| 131 | the state machine has no such arrow |
| 132 | the ledger cannot be reached: try again later |
| 133 | another transaction was in the way: try again |
| 134 | the schema is not the one that this version needs |
| 135 | the embedded Postgres cannot be started or stopped |
| 136 | a version could not be written |
| 138 | Spark cannot be reached |
| 140 | a script failed |
| 142 | a secret cannot be read: no passphrase, or another one |
| 144 | the columns are not those that were declared |
| 160 + n | `odf run` was ended by signal n, and has passed it on (a shell would say 128 + n, which are errors here) |
"""


Words: TypeAlias = tuple[str, ...]


def leaves(command: click.Command, words: Words = ("odf",)) -> Iterator[tuple[Words, click.Command]]:
    """Every command that is not a group, with the words that call it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command, info_name=words[-1])
    for name in command.list_commands(context):
        if (found := command.get_command(context, name)) is not None and not found.hidden:
            yield from leaves(found, (*words, name))


def reference() -> str:
    parts = [_INTRODUCTION]
    by_name: dict[str, list[str]] = {}
    for words, command in leaves(odf):
        by_name.setdefault(words[1], []).append(f"### {' '.join(words)}\n\n```text\n{_help(words, command)}\n```\n")
    for title, commands in SECTIONS.items():
        parts.append(f"## {title}\n")
        for name in commands:
            parts += by_name[name]
    return "\n".join(parts)


def _help(words: Words, command: click.Command) -> str:
    # The words before the last name groups, which have no arguments of their own.
    context = click.Context(command, info_name=" ".join(words), terminal_width=100, help_option_names=["-h", "--help"])
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


if __name__ == "__main__":
    click.echo(reference(), nl=False)
