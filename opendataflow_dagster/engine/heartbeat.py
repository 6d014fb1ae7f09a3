"""The heartbeat of a run. A run without a heartbeat for minutes is taken for dead."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ..ledger.database import Ledger
from ..model.ids import RunId
from ..protocol.job_run import record_heartbeat

_EVERY_SECONDS: Final = 5.0


@contextmanager
def heartbeat(ledger: Ledger, run_id: RunId) -> Iterator[None]:
    """Record that the run is alive while the block runs."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(_EVERY_SECONDS):
            # A missed beat is harmless; the next one may succeed.
            with suppress(Exception):
                record_heartbeat(ledger, run_id)

    thread = threading.Thread(target=beat, name="odf-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=10)
