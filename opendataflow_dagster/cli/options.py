"""Options that many commands share: --json, and for commands that change something --dry-run, --as, --reason, --yes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opendataflow_dagster.model.errors import InvalidInput

from .connection import open_ledger
from .output import print_json, printable, say

if TYPE_CHECKING:
    from .connection import Ledger

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R")

#: Changing more chunks, definitions, passwords or folders than this needs a confirmation.
CONFIRM_ABOVE = 20

json_option = click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
as_option = click.option("--as", "by", metavar="NAME", help="Name to record in the history. Default: your login.")
_YES = f"Do not ask for confirmation, even if more than {CONFIRM_ABOVE} items change."


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """How a change was requested: by whom, why, and whether as a dry run."""

    by: str | None
    reason: str
    dry_run: bool
    yes: bool
    json_wanted: bool

    def ledger(self) -> AbstractContextManager[Ledger]:
        return open_ledger(by=self.by, reason=self.reason, rehearsal=self.dry_run)

    def confirm(self, count: int, action: str) -> None:
        """`action` completes the sentence "This would ..."."""
        if self.yes or self.dry_run or count <= CONFIRM_ABOVE:
            return
        if not _can_prompt():
            raise InvalidInput(f"this would {action}; check with --dry-run, then pass --yes")
        if not click.confirm(f"This would {printable(action)}. Continue?", err=True):
            raise InvalidInput("cancelled; nothing was changed")

    def report(self, value: dict[str, object], sentence: str) -> None:
        if self.json_wanted:
            print_json({"dry_run": self.dry_run, **value})
        else:
            say(f"Dry run, nothing was changed. Would report: {sentence}" if self.dry_run else sentence)


def combined(*decorators: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Several arguments and options as one decorator, in the order of the help."""
    return lambda function: functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), function)


def change_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """For a command that changes something: its options become the first argument, a `Change`."""

    @json_option
    @click.option("--yes", "-y", is_flag=True, help=_YES)
    @click.option("--reason", default="", help="Reason to record in the history.")
    @as_option
    @click.option("--dry-run", is_flag=True, help="Show what would happen; change nothing.")
    @functools.wraps(function)
    def command(by: str | None, reason: str, dry_run: bool, yes: bool, json_wanted: bool, **rest: Any) -> _R:
        return function(Change(by=by, reason=reason, dry_run=dry_run, yes=yes, json_wanted=json_wanted), **rest)

    return command


def exit_with_answer(yes: bool) -> None:
    """Exit with 0 for yes and 1 for no."""
    click.get_current_context().exit(0 if yes else 1)


def _can_prompt() -> bool:
    return sys.stdin.isatty()
