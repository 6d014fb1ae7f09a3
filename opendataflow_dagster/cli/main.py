"""`odf`: the entry, the table of commands, and how an error leaves the program.

    0          it worked, or the answer is yes
    1          the answer is no
    64         the command was written wrongly
    128 ...    it failed; each error has its own code (model/errors.py)

Commands are loaded when they are asked for, and import what they need inside: `odf --help` stays instant.
"""

from __future__ import annotations

import contextlib
import importlib
import traceback
from collections.abc import Iterator
from typing import Any, NoReturn

import click

from opendataflow_dagster.model.errors import InvalidInput, OpenDataFlowError

USAGE_EXIT = InvalidInput.exit_code
FAILURE_EXIT = OpenDataFlowError.exit_code

COMMANDS = {
    "db": "opendataflow_dagster.cli.db:db",
    "schema": "opendataflow_dagster.cli.schema:schema",
}


class LazyGroup(click.Group):
    """A group whose commands are named here and imported on use: name -> "module:attribute"."""

    def __init__(self, *args: Any, lazy: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


class OdfGroup(LazyGroup):
    """The root: every error becomes one sentence on stderr and a stable exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _usage_exit():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _usage_exit():
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException):
            raise
        except OpenDataFlowError as error:
            _end(ctx, str(error), error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            # Not click's 1, which says "the answer is no".
            _end(ctx, "interrupted; nothing more was done", FAILURE_EXIT)
        except BrokenPipeError:
            raise
        except Exception as error:
            # Its text was not written by us and may hold a secret: only who asks for it sees it.
            name = type(error).__name__
            _end(ctx, f"unexpected {name}; run it again as `odf --debug ...` to see where", FAILURE_EXIT)


@contextlib.contextmanager
def _usage_exit() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.show()
        raise click.exceptions.Exit(USAGE_EXIT) from error


def _end(ctx: click.Context, sentence: str, exit_code: int) -> NoReturn:
    if ctx.params.get("debug"):
        traceback.print_exc()
    click.echo(f"odf: {sentence}", err=True)
    ctx.exit(exit_code)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"odf {version('opendataflow-dagster')}")
    except PackageNotFoundError:
        click.echo("odf (run from its source, not installed)")
    ctx.exit()


@click.group(cls=OdfGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
def odf(debug: bool) -> None:
    """OpenDataFlow: data that is ready, right, placed, valid and safe before every run."""


def main() -> None:
    odf(prog_name="odf")
