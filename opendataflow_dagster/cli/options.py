"""Options that many commands have, spelled once: --json, and for whatever changes something --dry-run, --as, --reason
and --yes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opendataflow_dagster.model.errors import InvalidInput

from .output import print_json, say

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.database import Ledger

_R = TypeVar("_R")

#: So many chunks, definitions, passwords or folders are changed without asking; more need a yes.
WIDE = 20

as_json = click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Act:
    """How a change was asked for: by whom, why, in earnest or not."""

    by: str | None
    reason: str
    dry_run: bool
    yes: bool
    json_wanted: bool

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """In a dry run every verb does its work in a transaction that is rolled back: what it says is what would
        happen, refusals included."""
        with open_ledger(by=self.by, reason=self.reason, rehearsal=self.dry_run) as ledger:
            yield ledger

    def confirm(self, count: int, what: str) -> None:
        """`what` goes on from "This would ...". Few need no yes."""
        if self.yes or self.dry_run or count <= WIDE:
            return
        if not _can_ask():
            raise InvalidInput(f"this would {what}; look at it with --dry-run, then say --yes")
        if not click.confirm(f"This would {what}. Go on?", err=True):
            raise InvalidInput("nothing was changed; narrow it down, or say yes")

    def report(self, value: dict[str, object], sentence: str) -> None:
        if self.json_wanted:
            print_json({"dry_run": self.dry_run, **value})
        else:
            say(f"Dry run, nothing was changed. In earnest: {sentence}" if self.dry_run else sentence)


def acts(function: Callable[..., _R]) -> Callable[..., _R]:
    """The command changes something: it gets the options for that, collected as its first argument `act`."""

    @as_json
    @click.option(
        "--yes", "-y", is_flag=True, help=f"Do not ask, even if more than {WIDE} chunks, definitions or folders change."
    )
    @click.option("--reason", default="", help="Why; stored in the history.")
    @click.option("--as", "by", metavar="NAME", help="Who acts, for the history. Default: the login.")
    @click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
    @functools.wraps(function)
    def command(by: str | None, reason: str, dry_run: bool, yes: bool, json_wanted: bool, **rest: Any) -> _R:
        return function(Act(by=by, reason=reason, dry_run=dry_run, yes=yes, json_wanted=json_wanted), **rest)

    return command


@contextmanager
def open_ledger(*, by: str | None = None, reason: str = "", rehearsal: bool = False) -> Iterator[Ledger]:
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.ledger.settings import database_url

    with Ledger(database_url(), actor=by, reason=reason, rehearsal=rehearsal) as ledger:
        yield ledger


def answer(yes: bool) -> None:
    """Exit with 0 or 1: the command was a question."""
    click.get_current_context().exit(0 if yes else 1)


def _can_ask() -> bool:
    return sys.stdin.isatty()
