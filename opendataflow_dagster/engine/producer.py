"""One run of a Job over many chunks: each is claimed, computed, staged, validated, published and recorded for itself.

Chunks are claimed in portions and made several at a time. What fails, fails alone; what gets a no is kept with its
answers; whatever ends the run itself gives all claims back at once.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from logging import Logger
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from ..ledger.claims import Publication
from ..ledger.database import Ledger
from ..ledger.registry import Room
from ..model.claim import Claim
from ..model.errors import ClaimLost, OpenDataFlowError
from ..model.ids import DataId, DatasetId, RunId
from ..model.manifest import NewManifest
from ..model.verdict import Code
from ..protocol.claim import claim_many
from ..protocol.publish import publish
from ..protocol.read import skipped_inputs
from ..protocol.release import fail
from ..protocol.stage import stage
from ..protocol.throttle import room
from ..protocol.validate import validate
from ..scripts.process import Stop
from ..warehouse.failures import cause, refuse_dead_session
from ..warehouse.session import interrupt, tag_thread
from .chunk import ChunkContext, Inputs, frame_of
from .declaration import Declaration, ReadForeign
from .leases import Leases
from .outcome import Made, Outcome
from .previous_rows import previous_rows
from .script_dataset import make_with_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# So many claimed chunks wait for each that is being made: claiming them together is cheaper, and a crash costs little.
_AHEAD = 4
# How long a run waits for a database that went away, and how often it asks whether there is room.
_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 1.0

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, slots=True)
class Staged:
    """A chunk that was written and is to be published."""

    manifest: NewManifest
    #: When its work began, by this process's clock.
    began: float


@dataclass(frozen=True, kw_only=True)
class Producer:
    ledger: Ledger
    #: Gives the session of this process; starting one costs seconds, so a run that may make nothing starts none.
    engine: Callable[[], SparkSession]
    declaration: Declaration
    #: Where its files go.
    root: str
    foreign: Mapping[DatasetId, ReadForeign]
    schemas: Mapping[DatasetId, StructType]
    run_id: RunId
    at_once: int
    log: Logger
    #: Is called once for each published chunk, from the run's own thread.
    published: Callable[[Made], None]

    #: Ends the scripts that run.
    stop: Stop = field(default_factory=Stop)

    @cached_property
    def spark(self) -> SparkSession:
        return self.engine()

    def run(self, dataids: Sequence[DataId]) -> Outcome:
        outcome, waiting = Outcome(), deque(dataids)
        if not waiting:
            return outcome
        tag = f"opendataflow-{self.run_id}"
        makers = ThreadPoolExecutor(max_workers=self.at_once, thread_name_prefix="odf-chunk")
        # One chunk is published while the next is made.
        publishers = ThreadPoolExecutor(max_workers=self.at_once, thread_name_prefix="odf-publish")
        working: dict[Future[Staged | Made | str | None], Claim] = {}
        try:
            with Leases(self.ledger, self.log) as leases:
                while waiting or working:
                    if waiting and len(working) <= self.at_once:
                        for claim in self._claim(waiting, outcome, leases, idle=not working):
                            working[makers.submit(self._make, claim, leases, tag)] = claim
                    done, _ = wait(working, timeout=None if working else 0, return_when=FIRST_COMPLETED)
                    for one in done:
                        claim, result = working.pop(one), one.result()
                        if isinstance(result, Staged):
                            working[publishers.submit(self._publish, claim, leases, result)] = claim
                        else:
                            self._note(outcome, claim.dataid, result)
        except BaseException:
            # The claims are given back already; who still computes would only hold up the process.
            self.stop.get(signal.SIGTERM)
            if "spark" in vars(self):
                with suppress(Exception):
                    interrupt(self.spark, tag)
            raise
        finally:
            for pool in (makers, publishers):
                pool.shutdown(wait=False, cancel_futures=True)
        return outcome

    def _claim(self, waiting: deque[DataId], outcome: Outcome, leases: Leases, *, idle: bool) -> tuple[Claim, ...]:
        """The next portion, as far as the Job's concurrency has room; when there is none and nothing to do, wait."""
        there, most = self._room(), self.at_once * _AHEAD
        if there.free == 0 and there.paused is None:
            if idle:
                threading.Event().wait(_PAUSE_SECONDS)
            return ()
        count = most if there.free is None or there.paused is not None else min(most, there.free)
        portion = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        claimed = patiently(lambda: claim_many(self.ledger, self.declaration.jobid, portion, self.run_id), self.log)
        leases.hold(claimed.claims)
        crowded = there.concurrency is not None and claimed.refused and self._is_full()
        for verdict in claimed.refused:
            if crowded and verdict.code == Code.LOCKED:
                waiting.append(verdict.dataid)  # somebody else has taken the room meanwhile: wait for it
                continue
            outcome.refused[verdict.dataid] = verdict
            self.log.error(f"{self.declaration.datasetid}/{verdict.dataid}: {str(verdict).partition(': ')[2]}")
        return claimed.claims

    def _is_full(self) -> bool:
        """Others have taken the room; it comes back by itself. That of a paused Job does not."""
        now = self._room()
        return now.free == 0 and now.paused is None

    def _room(self) -> Room:
        return patiently(lambda: room(self.ledger, self.declaration.jobid), self.log)

    def _make(self, claim: Claim, leases: Leases, tag: str) -> Staged | Made | str | None:
        """What is to be published; or a script's chunk, the reason of its failure, or None when the claim was lost.

        Raises to end the run.
        """
        if not leases.begin(claim):
            return None
        made = self._guarded(claim, leases, partial(self._stage_or_run, claim, tag))
        if not isinstance(made, Staged):
            leases.let_go(claim)
        return made

    def _publish(self, claim: Claim, leases: Leases, staged: Staged) -> Made | str | None:
        def act() -> Made | None:
            if leases.is_lost(claim):
                return None
            publication = patiently(lambda: publish(self.ledger, claim, staged.manifest), self.log)
            seconds = monotonic() - staged.began
            return Made(claim=claim, manifest=staged.manifest, publication=publication, seconds=seconds)

        made = self._guarded(claim, leases, act)
        leases.let_go(claim)
        return made

    def _guarded(self, claim: Claim, leases: Leases, act: Callable[[], Result]) -> Result | str | None:
        """What happens to one chunk belongs to it alone; what ends the run lets nothing begin any more."""
        try:
            try:
                return act()
            except ClaimLost:
                return None
            except Exception as error:  # the author's, or Spark's, or a check's
                if isinstance(error, OpenDataFlowError) and error.retryable:
                    raise  # the database or Spark is gone, and that belongs to the whole run
                return self._fail(claim, error)
        except BaseException:
            leases.end()
            raise

    def _stage_or_run(self, claim: Claim, tag: str) -> Staged | Made | str:
        began = monotonic()
        if self.declaration.command:
            return self._run_script(claim)
        tag_thread(self.spark, tag)
        return Staged(manifest=self._stage(claim), began=began)

    def _run_script(self, claim: Claim) -> Made | str:
        """It is published or failed by the verb that runs scripts."""
        began = monotonic()
        made = make_with_script(self.ledger, self.declaration, claim, self.stop)
        if isinstance(made, str):
            self.log.error(f"{self.declaration.datasetid}/{claim.dataid} FAILED: {made}")
            return f"FAILED: {made}"
        publication = Publication(
            claim_id=claim.claim_id, datasetid=made.datasetid, manifest_id=made.manifest_id, version=made.version
        )
        return Made(claim=claim, manifest=made, publication=publication, seconds=monotonic() - began)

    def _stage(self, claim: Claim) -> NewManifest:
        declared = self.declaration
        assert declared.compute is not None  # noqa: S101
        context = ChunkContext(
            datasetid=declared.datasetid, dataid=claim.dataid, claim=claim, spark=self.spark, log=self.log
        )
        inputs = Inputs(
            claim=claim,
            declaration=declared,
            spark=self.spark,
            foreign=self.foreign,
            skipped=skipped_inputs(self.ledger, claim),
            schemas=self.schemas,
        )
        made = declared.compute(inputs, context)
        written = stage(
            frame_of(made, declared.datasetid),
            root=self.root,
            dataid=claim.dataid,
            claim_id=claim.claim_id,
            checks=declared.checks,
            schema=declared.schema,
        )
        return validate(written, previous_rows(self.ledger, declared, claim.dataid))

    def _fail(self, claim: Claim, error: Exception) -> str | None:
        if "spark" in vars(self):
            refuse_dead_session(self.spark, error, f"chunk {claim.dataid}")
        reason = str(error) if isinstance(error, OpenDataFlowError) else cause(error)
        self.log.error(f"{self.declaration.datasetid}/{claim.dataid} FAILED: {reason}", exc_info=error)
        try:
            patiently(lambda: fail(self.ledger, claim, reason), self.log)
        except ClaimLost:
            return None
        return f"FAILED: {reason}"

    def _note(self, outcome: Outcome, dataid: DataId, result: Made | str | None) -> None:
        match result:
            case Made():
                outcome.made += 1
                self.published(result)
            case str():
                outcome.failed[dataid] = result
            case None:
                outcome.lost.append(dataid)


def patiently(act: Callable[[], Result], log: Logger) -> Result:
    """A verb that may be said again, until the database is back or patience ends."""
    until = monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return act()
        except OpenDataFlowError as error:
            if not error.retryable or monotonic() > until:
                raise
            log.warning(f"trying again: {error}")
            threading.Event().wait(_PAUSE_SECONDS)
