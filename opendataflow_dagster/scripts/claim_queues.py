"""Where `odf run` gets its claims from: the next chunks of a Job, or a single chunk by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache

from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import OpenDataFlowError
from ..model.ids import RunId
from ..protocol.claim import claim_next
from ..protocol.heal import heal
from ..protocol.release import abandon
from ..secrets.passphrase import passphrase
from .environment import Provision, provision
from .order import Order, Report

# The registry may change while `--all` runs for hours.
_PROVISION_SECONDS = 5.0


class JobEnvironment:
    """The environment of the Job's scripts, looked up again when it is some seconds old."""

    def __init__(self, ledger: Ledger, order: Order) -> None:
        self._ledger, self._order = ledger, order
        self._passphrase = cache(passphrase)
        self._found: tuple[float, Provision] | None = None

    def refresh(self) -> Provision:
        if self._found is None or time.monotonic() - self._found[0] > _PROVISION_SECONDS:
            provided = provision(self._ledger, self._order.jobid, self._passphrase)
            provided.refuse_too_much(self._order.command)
            self._found = time.monotonic(), provided
        return self._found[1]


class NextChunks:
    """The next chunks of the Job. Only as many are claimed as scripts can start now."""

    def __init__(
        self,
        ledger: Ledger,
        order: Order,
        environment: JobEnvironment,
        report: Report,
        run_id: RunId,
        everything: bool,
        parallel: int,
    ) -> None:
        self._ledger, self._order, self._environment, self._report = ledger, order, environment, report
        self._run_id, self._everything, self._parallel = run_id, everything, parallel
        self.is_empty = False

    def take(self, in_progress: int) -> Sequence[Claim]:
        stop = self._order.stop
        self.is_empty |= stop.signal is not None
        if self.is_empty or in_progress >= self._parallel:
            return ()
        try:
            taken = self._claim(in_progress)
        except OpenDataFlowError as error:
            if in_progress and error.retryable:
                return ()  # running scripts go on; the next one that ends claims again
            raise
        self.is_empty = not self._everything or not (taken or in_progress)
        if taken and stop.signal is not None:
            abandon(self._ledger, taken, "odf received a signal before the script was started")
            return ()
        return taken

    def _claim(self, in_progress: int) -> list[Claim]:
        self._environment.refresh()
        jobid, count = self._order.jobid, self._parallel - in_progress
        taken = claim_next(self._ledger, jobid, count, self._run_id)
        if not taken and self._everything and not in_progress:
            heal(self._ledger)
            taken = claim_next(self._ledger, jobid, count, self._run_id)
        self._report.begun |= bool(taken)
        return taken


class SingleChunk:
    def __init__(self, take: Callable[[RunId], Claim | None], report: Report, run_id: RunId) -> None:
        self._take, self._report, self._run_id = take, report, run_id
        self.is_empty = False

    def take(self, in_progress: int) -> Sequence[Claim]:
        if self.is_empty:
            return ()
        self.is_empty = True
        taken = self._take(self._run_id)
        if taken is None:  # it became READY after the request, so the request is satisfied
            self._report.finished += 1
            return ()
        self._report.begun = True
        return (taken,)
