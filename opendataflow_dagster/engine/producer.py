"""The producer: claims chunks, makes several at a time, publishes them, and records how each one ended.

Dagster runs, `odf run` and the test API all make their chunks here. They differ in where claims come from and in how a
chunk is made. A chunk fails alone; an error that concerns the whole run releases all of its claims at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from logging import Logger
from time import monotonic
from typing import Any, TypeAlias

from ..ledger.claims import Publication
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost, InvalidManifest, OpenDataFlowError, ScriptFailed
from ..model.ids import DatasetId
from ..model.manifest import NewManifest
from ..model.text import masked
from ..protocol.release import fail
from .authors_traceback import authors_traceback
from .cancellation import Cancellation
from .claim_queue import ClaimQueue
from .leases import LeaseKeeper
from .publisher import Publisher, StagedChunk
from .retry import PATIENCE_SECONDS, Retry
from .run_result import ChunkResult


class ChunkFailed(Exception):
    """Raised by a source: why a chunk could not be made, in one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldClaim:
    """A claim whose lease is kept while its chunk is made."""

    claim: Claim
    #: Stop early: the result could not be published.
    is_lost: Callable[[], bool]
    cancellation: Cancellation


#: Writes a new version of each output of a claim. An error fails the chunk, unless it concerns the whole run.
MakeChunk: TypeAlias = Callable[[HeldClaim], Mapping[DatasetId, NewManifest]]


class Producer:
    def __init__(
        self,
        ledger: Ledger,
        make: MakeChunk,
        on_result: Callable[[ChunkResult], None],
        *,
        at_once: int,
        log: Logger,
        cancellation: Cancellation,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        """`on_result` is called once for each claimed chunk, in the thread that calls `run`."""
        self._ledger, self._make, self._on_result = ledger, make, on_result
        self._at_once, self._log, self._cancellation = at_once, log, cancellation
        self._retry = Retry(log, cancellation.event, is_ending)

    def run(self, queue: ClaimQueue) -> None:
        makers = ThreadPoolExecutor(max_workers=self._at_once, thread_name_prefix="odf-chunk")
        making: dict[Future[StagedChunk | ChunkResult | None], Claim] = {}
        publishing: dict[Future[Publication], StagedChunk] = {}
        try:
            with LeaseKeeper(self._ledger, self._log) as leases, Publisher(self._ledger, self._retry) as publisher:
                while True:
                    claims = queue.take(len(making) + len(publishing))
                    leases.hold(claims)
                    making |= {makers.submit(self._stage, claim, leases): claim for claim in claims}
                    if not making and not publishing:
                        if queue.is_empty:
                            return
                        continue
                    in_progress: list[Future[Any]] = [*making, *publishing]
                    wait(in_progress, return_when=FIRST_COMPLETED)
                    for future in [future for future in making if future.done()]:
                        claim, made = making.pop(future), future.result()
                        if isinstance(made, StagedChunk):
                            publishing[made.publication] = made
                            publisher.add(made)
                        elif made is not None:
                            leases.release(claim)
                            self._on_result(made)
                    for publication in [future for future in publishing if future.done()]:
                        staged = publishing.pop(publication)
                        result = self._published(staged)
                        leases.release(staged.claim)
                        self._on_result(result)
        except BaseException:
            self._cancellation.cancel()
            raise
        finally:
            makers.shutdown(wait=False, cancel_futures=True)

    def _stage(self, claim: Claim, leases: LeaseKeeper) -> StagedChunk | ChunkResult | None:
        """None: the run is failing, so the chunk was not started. An error ends the run."""
        if not leases.begin(claim):
            return None
        began = monotonic()
        held = HeldClaim(claim=claim, is_lost=lambda: leases.is_lost(claim), cancellation=self._cancellation)
        try:
            try:
                return StagedChunk(claim=claim, manifests=self._make(held), began=began)
            except ClaimLost as error:
                return ChunkResult(claim=claim, status="lost", reason=str(error), seconds=monotonic() - began)
            except Exception as error:
                if _concerns_the_run(error):
                    raise
                return self._fail(claim, error, began)
        except BaseException:
            leases.fail_run()
            raise

    def _published(self, staged: StagedChunk) -> ChunkResult:
        try:
            publication = staged.publication.result()
        except ClaimLost as error:
            return ChunkResult(claim=staged.claim, status="lost", reason=str(error), seconds=monotonic() - staged.began)
        except InvalidManifest as error:
            return replace(self._fail(staged.claim, error, staged.began), manifests=staged.manifests)
        return ChunkResult(
            claim=staged.claim,
            status="published",
            manifests=staged.manifests,
            publication=publication,
            seconds=monotonic() - staged.began,
        )

    def _fail(self, claim: Claim, error: Exception, began: float) -> ChunkResult:
        known = isinstance(error, OpenDataFlowError | ChunkFailed)
        reason = masked(str(error) if known else f"{type(error).__name__}: {error}")
        cause = error.__cause__ if isinstance(error, ChunkFailed) else error
        trace = masked(authors_traceback(cause) or "") if cause else ""
        text = f"{claim.jobid}/{claim.dataid} FAILED: {reason}"
        if trace:
            self._log.error(f"{text}\n{trace}")
        else:
            # Not in the author's code: all frames may matter.
            self._log.error(text, exc_info=cause)
        patience = max(PATIENCE_SECONDS, claim.lease.total_seconds())
        try:
            self._retry(lambda: fail(self._ledger, claim, reason, trace or None), patience)
        except ClaimLost as lost:
            return ChunkResult(claim=claim, status="lost", reason=str(lost), seconds=monotonic() - began)
        return ChunkResult(
            claim=claim, status="failed", reason=reason, traceback=trace or None, seconds=monotonic() - began
        )


def _concerns_the_run(error: Exception) -> bool:
    """The ledger or Spark is unavailable, or a program cannot be started: no other chunk could be made either."""
    return isinstance(error, ScriptFailed) or (isinstance(error, OpenDataFlowError) and error.retryable)
