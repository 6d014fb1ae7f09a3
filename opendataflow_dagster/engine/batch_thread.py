"""A thread that handles items in batches: what is added while it works on one batch is the next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class BatchThread(Generic[Item]):
    def __init__(self, name: str, handle: Callable[[list[Item]], None], *, enough: int = 1, seconds: float = 0) -> None:
        """A batch begins with `enough` items, or after `seconds` with fewer. `handle` raises nothing."""
        self._handle, self._enough, self._seconds = handle, enough, seconds or None
        self._waiting: list[Item] = []
        self._change = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, item: Item) -> None:
        with self._change:
            self._waiting.append(item)
            if len(self._waiting) >= self._enough:
                self._change.notify()

    def finish(self) -> None:
        """Handle what is waiting, then end."""
        self._close()
        self._thread.join()

    def stop(self) -> None:
        """Handle nothing more. A batch in progress is not waited for: it may be stuck."""
        with self._change:
            self._waiting.clear()
        self._close()

    def _close(self) -> None:
        with self._change:
            self._closed = True
            self._change.notify()

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._closed or len(self._waiting) >= self._enough, self._seconds)
                batch, self._waiting = self._waiting, []
                closed = self._closed
            if batch:
                self._handle(batch)
            if closed:
                return
