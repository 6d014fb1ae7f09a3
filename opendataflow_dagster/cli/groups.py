"""Command groups that import their commands on first use, and turn errors into messages and exit codes.

0          success, or the answer is yes
1          the answer is no
64         usage error
128 ...    failed, interrupted, or the output pipe was closed; each error has its own code (model/errors.py)
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import click

from opendataflow_dagster.model.errors import InvalidInput, OpenDataFlowError
from opendataflow_dagster.model.text import did_you_mean

from .output import write

USAGE_EXIT = InvalidInput.exit_code
FAILURE_EXIT = OpenDataFlowError.exit_code


class LazyGroup(click.Group):
    """A group whose commands are imported on first use: name -> "module:attribute".

    With sections, its help lists the commands with their summaries without importing any.
    """

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, str] | None = None,
        sections: Mapping[str, Mapping[str, tuple[str, str]]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections or {}
        listed = {name: path for section in self._sections.values() for name, (path, _) in section.items()}
        self._lazy = {**(lazy or {}), **listed}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            advice = did_you_mean(
                args[0], self.list_commands(ctx), f"list the commands with: {ctx.command_path} --help"
            )
            raise click.UsageError(f"{ctx.command_path} has no command {args[0]}; {advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self._sections:
            super().format_commands(ctx, formatter)
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary) for name, (_, summary) in section.items()])


class OdfGroup(LazyGroup):
    """The root: every error becomes one line on stderr and a stable exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _usage_exit():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _usage_exit(), _flushed_output():
                return super().invoke(ctx)
        except click.exceptions.Exit:
            raise
        except OpenDataFlowError as error:
            _fail(ctx, str(error), error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            # Not click's exit code 1, which means "the answer is no".
            _fail(ctx, "interrupted", FAILURE_EXIT)
        except BrokenPipeError:
            # The reader closed the pipe. Not exit code 1, which would be an answer; and Python must not flush again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(FAILURE_EXIT)
        except Exception as error:
            # The text of an unknown error may contain a secret: only --debug shows it.
            _fail(ctx, f"unexpected {type(error).__name__}; rerun with `odf --debug` for a traceback", FAILURE_EXIT)


@contextlib.contextmanager
def _usage_exit() -> Iterator[None]:
    try:
        yield
    except click.NoSuchOption as error:
        _show(_with_nearest(error))
        raise click.exceptions.Exit(USAGE_EXIT) from error
    except click.ClickException as error:
        _show(error)
        raise click.exceptions.Exit(USAGE_EXIT) from error


def _show(error: click.ClickException) -> None:
    shown = io.StringIO()
    error.show(file=shown)
    write(shown.getvalue(), err=True, nl=False)


def _with_nearest(error: click.NoSuchOption) -> click.UsageError:
    if error.ctx is None:
        return error
    options = [
        name for option in error.ctx.command.get_params(error.ctx) for name in (*option.opts, *option.secondary_opts)
    ]
    known = [name for name in options if name.startswith("--")]
    advice = did_you_mean(error.option_name, known, f"list the options with: {error.ctx.command_path} --help")
    return click.UsageError(f"{error.ctx.command_path} has no option {error.option_name}; {advice}", error.ctx)


@contextlib.contextmanager
def _flushed_output() -> Iterator[None]:
    """Detects a closed pipe here instead of at interpreter exit."""
    try:
        yield
    finally:
        sys.stdout.flush()


def _fail(ctx: click.Context, message: str, exit_code: int) -> NoReturn:
    if ctx.params.get("debug"):
        write(traceback.format_exc(), err=True)
    write(f"odf: {message}", err=True)
    ctx.exit(exit_code)
