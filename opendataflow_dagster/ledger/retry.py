"""Repeats a transaction that gave way to another one."""

from __future__ import annotations

from collections.abc import Callable
from random import uniform
from time import monotonic, sleep
from typing import Final, TypeVar

from ..model.errors import BlockedBySession, LedgerConflict

PATIENCE_SECONDS: Final = 30.0

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
