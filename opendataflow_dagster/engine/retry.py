"""The one retry policy of the engine: repeat a ledger call while the ledger is unavailable, within limits."""

from __future__ import annotations

from collections.abc import Callable
from logging import Logger
from threading import Event
from time import monotonic
from typing import TypeVar

from ..model.errors import OpenDataFlowError

#: How long a run that was told to end still tries to record the outcome of its chunks. Otherwise their leases expire.
ENDING_SECONDS = 5.0
#: How long a run waits for a ledger that went away. A claim's outcome is worth waiting for as long as its lease.
PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 1.0

Result = TypeVar("Result")


class Retry:
    """Only for calls that are safe to repeat. `cancelled` ends the waiting of all threads of a run at once; after a run
    was told to end (`is_ending`), they wait no longer than ENDING_SECONDS."""

    def __init__(
        self, log: Logger, cancelled: Event | None = None, is_ending: Callable[[], bool] = lambda: False
    ) -> None:
        self._log = log
        self._cancelled = cancelled or Event()
        self._is_ending = is_ending

    def __call__(self, call: Callable[[], Result], patience: float = PATIENCE_SECONDS) -> Result:
        until = monotonic() + patience
        has_ended = False
        while True:
            try:
                return call()
            except OpenDataFlowError as error:
                if not has_ended and self._is_ending():
                    has_ended, until = True, min(until, monotonic() + ENDING_SECONDS)
                if not error.retryable or monotonic() > until or self._cancelled.is_set():
                    raise
                self._log.warning(f"retrying: {error}")
                self._cancelled.wait(PAUSE_SECONDS)
