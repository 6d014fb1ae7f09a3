"""Cancellation of a run: ends the Spark jobs, programs and retries that its threads still have in progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock


class Cancellation:
    def __init__(self) -> None:
        self.event = Event()
        self._actions: list[Callable[[], None]] = []
        self._lock = Lock()

    @contextmanager
    def calling(self, action: Callable[[], None]) -> Iterator[None]:
        """Call `action` if the run is cancelled while the block runs."""
        with self._lock:
            self._actions.append(action)
        try:
            if self.event.is_set():
                _attempt(action)
            yield
        finally:
            with self._lock:
                self._actions.remove(action)

    def cancel(self) -> None:
        self.event.set()
        with self._lock:
            actions = tuple(self._actions)
        for action in actions:
            _attempt(action)


def _attempt(action: Callable[[], None]) -> None:
    """Best effort: the claims are released already, so nothing of this work can be published."""
    with suppress(Exception):
        action()
