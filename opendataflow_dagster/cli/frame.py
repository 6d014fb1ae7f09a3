"""The frame of `odf`: groups that load their commands on use, and how an error leaves the program.

0          it worked, or the answer is yes
1          the answer is no
64         the command was written wrongly
128 ...    it failed, was interrupted, or nobody read it to the end; each error has its own code (model/errors.py)
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import click

from opendataflow_dagster.model.errors import InvalidInput, OpenDataFlowError

USAGE_EXIT = InvalidInput.exit_code
FAILURE_EXIT = OpenDataFlowError.exit_code


class LazyGroup(click.Group):
    """A group whose commands are named here and imported on use: name -> "module:attribute".

    With sections its help shows them in order, each command with a few words, and imports none of them.
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
        listed = {name: path for part in self._sections.values() for name, (path, _) in part.items()}
        self._lazy = {**(lazy or {}), **listed}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self._sections:
            super().format_commands(ctx, formatter)
        for title, part in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, words) for name, (_, words) in part.items()])


class OdfGroup(LazyGroup):
    """The root: every error becomes one sentence on stderr and a stable exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _usage_exit():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _usage_exit(), _whole_output():
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException):
            raise
        except OpenDataFlowError as error:
            _end(ctx, str(error), error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            # Not click's 1, which says "the answer is no".
            _end(ctx, "interrupted; nothing more was done", FAILURE_EXIT)
        except BrokenPipeError:
            # Nobody read it to the end; click's 1 would be an answer. What Python still holds must not be tried again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(FAILURE_EXIT)
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


@contextlib.contextmanager
def _whole_output() -> Iterator[None]:
    """A pipe that was closed is found here, not when Python ends."""
    try:
        yield
    finally:
        sys.stdout.flush()


def _end(ctx: click.Context, sentence: str, exit_code: int) -> NoReturn:
    if ctx.params.get("debug"):
        traceback.print_exc()
    click.echo(f"odf: {sentence}", err=True)
    ctx.exit(exit_code)
