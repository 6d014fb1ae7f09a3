"""Repeats a transaction that gave way to another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from random import uniform
from time import monotonic, sleep
from typing import Concatenate, Final, ParamSpec, TypeVar

from ..model.errors import BlockedBySession, LedgerConflict
from .database import Ledger

PATIENCE_SECONDS: Final = 30.0
#: A person waits for the answer.
VERB_SECONDS: Final = 10.0

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Pauses:
    """Growing pauses between the tries, so that a lock that is held for long costs few errors in the server's log."""

    _FIRST_SECONDS: Final = 0.01
    _LONGEST_SECONDS: Final = 2.0

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        self._until = monotonic() + patience
        self._seconds = self._FIRST_SECONDS

    @property
    def are_over(self) -> bool:
        return monotonic() > self._until

    def pause(self) -> bool:
        """False: patience is at its end."""
        if self.are_over:
            return False
        sleep(uniform(self._seconds / 2, self._seconds))  # noqa: S311 - not a secret
        self._seconds = min(2 * self._seconds, self._LONGEST_SECONDS)
        return True


def retry_conflicts(act: Callable[[], Result], patience: float = PATIENCE_SECONDS) -> Result:
    """For a verb that is safe to repeat."""
    pauses = Pauses(patience)
    while True:
        try:
            return act()
        except BlockedBySession:
            raise
        except LedgerConflict:
            if not pauses.pause():
                raise


def gives_way(verb: Callable[Concatenate[Ledger, Given], Result]) -> Callable[Concatenate[Ledger, Given], Result]:
    """For a verb that is one transaction: after 200 ms without a lock it lets others pass, and tries again. In the end
    it names the session that is in the way."""

    repeated: Callable[..., Result] = verb

    @wraps(verb)
    def patiently(ledger: Ledger, /, *given: Given.args, **named: Given.kwargs) -> Result:
        values = [_kept(value) for value in given]
        options = {name: _kept(value) for name, value in named.items()}
        try:
            return retry_conflicts(lambda: repeated(ledger, *values, **options), VERB_SECONDS)
        except BlockedBySession:
            raise
        except LedgerConflict:
            refuse_to_wait(ledger, verb.__name__.strip("_").replace("_", " "))
            raise

    return patiently


def _kept(value: object) -> object:
    """The first try would use up an iterator."""
    return list(value) if isinstance(value, Iterator) else value


def refuse_to_wait(ledger: Ledger, what: str) -> None:
    """BlockedBySession, if a session has left a transaction open; otherwise others are just busy."""
    with ledger.statement() as statement:
        statement.rows("refuse_to_wait", what=what)
