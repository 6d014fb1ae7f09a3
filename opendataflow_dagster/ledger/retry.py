"""Retries a transaction that gave way to another one."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, TypeVar

from ..model.errors import LedgerConflict

#: A transaction gives way after 200 ms without a lock, so this is some hundred tries.
PATIENCE_SECONDS: Final = 30.0

Result = TypeVar("Result")


def retry_conflicts(act: Callable[[], Result]) -> Result:
    """For a verb that is safe to repeat."""
    until = monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return act()
        except LedgerConflict:
            if monotonic() > until:
                raise
