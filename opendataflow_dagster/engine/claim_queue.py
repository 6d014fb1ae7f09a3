"""Where a run gets its claims from: chunks by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from logging import Logger
from threading import Event
from typing import Protocol

from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.ids import DataId, JobId, RunId
from ..model.verdict import Code
from ..protocol.claim import claim_many
from .retry import PAUSE_SECONDS, Retry
from .run_result import RunResult

# Claimed chunks that wait for each one in progress. Claiming them together is cheaper, and a crash costs little.
_AHEAD = 4


class ClaimQueue(Protocol):
    @property
    def is_empty(self) -> bool: ...

    def take(self, in_progress: int) -> Sequence[Claim]:
        """Claim the next chunks, if so few are in progress that more are needed."""
        ...


class NamedChunks:
    """Chunks by name. Those that are refused are recorded with their verdict."""

    def __init__(
        self,
        ledger: Ledger,
        jobid: JobId,
        dataids: Iterable[DataId],
        *,
        run_id: RunId,
        at_once: int,
        result: RunResult,
        retry: Retry,
        log: Logger,
    ) -> None:
        self._ledger, self._jobid, self._run_id = ledger, jobid, run_id
        self._waiting = deque(dataids)
        self._at_once = at_once
        self._result, self._retry, self._log = result, retry, log

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def take(self, in_progress: int) -> Sequence[Claim]:
        if not self._waiting or in_progress > self._at_once:
            return ()
        portion = [self._waiting.popleft() for _ in range(min(_AHEAD * self._at_once, len(self._waiting)))]
        claimed = self._retry(lambda: claim_many(self._ledger, self._jobid, portion, self._run_id))
        self._result.at_limit = claimed.at_limit
        for verdict in claimed.refused:
            if claimed.at_limit and verdict.code == Code.LOCKED:
                self._waiting.append(verdict.dataid)
            else:
                self._result.refused[verdict.dataid] = verdict
                self._log.error(f"{self._jobid}/{verdict.dataid} refused: {str(verdict).partition(': ')[2]}")
        if claimed.at_limit and not claimed.claims and not in_progress:
            Event().wait(PAUSE_SECONDS)  # chunks of other runs hold the limit
        return claimed.claims
