"""Run a script for the next chunk of a Job, for all of them, or for one by name. This is what `odf run` and cron call.

Nothing is claimed before the script, its environment and its passwords are known to be right.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, Literal

from ..engine.cancellation import Cancellation
from ..engine.claim_queue import ClaimQueue
from ..engine.producer import HeldClaim, Producer
from ..engine.run_result import ChunkResult
from ..ledger import chunks, claims, registry
from ..ledger.database import Ledger
from ..ledger.job_runs import idle_counts
from ..model.claim import Claim
from ..model.errors import ClaimLost, NoGo, OpenDataFlowError, ScriptFailed
from ..model.ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, RunId, data_id
from ..model.manifest import NewManifest
from ..model.status import Status
from ..protocol.claim import claim, claim_next
from ..protocol.force import force
from ..protocol.gate import require_job
from ..protocol.heal import heal
from ..protocol.job_run import begin_run, end_run, forget_run
from ..protocol.release import abandon
from ..protocol.resubmit import resubmit
from ..protocol.throttle import room
from ..secrets.passphrase import passphrase
from .environment import Provision, provision
from .output import Screen
from .process import Stop
from .program import Limits, Program

NOT_READY: Final = 1
NEVER_READY: Final = 2
NOT_SCHEDULED: Final = 3
#: Plus the number of the signal. Not 128, as in a shell: 129 to 131 are errors of ours.
SIGNALLED: Final = 160

# The registry may change while `--all` runs for hours.
_PROVISION_SECONDS = 5.0

# The caller is told about each chunk, so the engine's own log lines have no reader.
_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptResult:
    """How a script ended, and what became of its chunk."""

    claim: Claim
    result: Literal["finished", "failed", "lost"]
    #: The script's own; negative: the signal that killed it.
    exit_code: int
    reason: str | None
    #: None: it printed nothing.
    log: Path | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to run, and how."""

    jobid: JobId
    command: Sequence[str]
    logs: Path
    by: str
    #: Makes the screen for the script of a claim.
    screen: Callable[[Claim], Screen] | None = None
    limits: Limits = field(default_factory=Limits)
    stop: Stop = field(default_factory=Stop)
    #: Called with each result, in the calling thread.
    tell: Callable[[ScriptResult], None] = lambda _: None
    #: Called in a dry run instead of the script: the chunk that it would run for, and what it would be given.
    rehearse: Callable[[Claim, Provision], None] = lambda _, __: None


@dataclass(frozen=True, kw_only=True, slots=True)
class Nothing:
    """Why there was nothing to run, and the exit code that tells a scheduler."""

    exit_code: int
    sentence: str


@dataclass(kw_only=True)
class Report:
    finished: int = 0
    failed: int = 0
    lost: int = 0
    nothing: Nothing | None = None
    signal: int | None = None
    #: A chunk was claimed.
    begun: bool = False

    def count(self, script: ScriptResult) -> None:
        match script.result:
            case "finished":
                self.finished += 1
            case "failed":
                self.failed += 1
            case "lost":
                self.lost += 1

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return SIGNALLED + self.signal
        if self.failed:
            return ScriptFailed.exit_code
        if self.lost:
            return ClaimLost.exit_code
        return self.nothing.exit_code if self.nothing is not None and not self.finished else 0


def run_next(ledger: Ledger, order: Order, *, everything: bool = False, parallel: int = 1) -> Report:
    """Run the script for the next chunk, or with `everything` until no chunk is ready; `parallel` chunks at a time."""
    if not _may_run(ledger, order.jobid):
        heal(ledger)  # where there is only cron, no sensor restores crashed chunks
        if not _may_run(ledger, order.jobid):
            return Report(nothing=why_nothing(ledger, order.jobid))
    environment = _Environment(ledger, order)
    environment.refresh()
    report = Report()
    _run(
        ledger,
        order,
        environment,
        report,
        lambda run_id: _NextChunks(ledger, order, environment, report, run_id, everything, parallel),
        parallel,
    )
    if not (report.finished or report.failed or report.lost or report.signal):
        report.nothing = why_nothing(ledger, order.jobid)
    return report


def run_chunk(ledger: Ledger, order: Order, dataid: str, *, forced: bool = False) -> Report:
    """Run the script for one chunk by name, as a person's request: FAILED and older READY chunks are resubmitted."""
    requested = datetime.now(UTC)
    name = data_id(dataid)
    environment = _Environment(ledger, order)
    outputs = environment.refresh().roots
    report = Report()

    def take(run_id: RunId) -> Claim | None:
        if forced:
            return force(ledger, order.jobid, name, run_id, by=order.by)
        return _claim_or_resubmit(ledger, order, outputs, name, run_id, requested)

    try:
        _run(ledger, order, environment, report, lambda run_id: _SingleChunk(take, report, run_id), 1)
    except NoGo:
        if room(ledger, order.jobid).paused is None:
            raise
        return Report(nothing=why_nothing(ledger, order.jobid))
    return report


def why_nothing(ledger: Ledger, jobid: JobId) -> Nothing:
    limit = room(ledger, jobid)
    if limit.paused is not None:
        return Nothing(
            exit_code=NOT_SCHEDULED,
            sentence=f"job {jobid} is paused (since {limit.paused}); resume it with: odf resume {jobid}",
        )
    if limit.free == 0:
        return Nothing(
            exit_code=NOT_READY,
            sentence=f"job {jobid} is at its concurrency limit ({limit.running} running); retry later",
        )
    with ledger.statement() as statement:
        counts = idle_counts(statement, jobid)
    if counts.gave_up:
        return Nothing(
            exit_code=NEVER_READY,
            sentence=f"no chunk of job {jobid} is ready, and {counts.gave_up} exhausted their retries, e.g. "
            f"{counts.gave_up_dataid}; see odf why {jobid}, fix the cause, then odf resubmit",
        )
    waiting = f"; {counts.refused} waiting, e.g. {counts.refused_dataid}" if counts.refused else ""
    waiting += f"; {counts.failed} failed and need a person" if counts.failed else ""
    return Nothing(exit_code=NOT_READY, sentence=f"no chunk of job {jobid} is ready{waiting}; see odf why {jobid}")


class _Environment:
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


class _NextChunks:
    """The next chunks of the Job. Only as many are claimed as scripts can start now."""

    def __init__(
        self,
        ledger: Ledger,
        order: Order,
        environment: _Environment,
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


class _SingleChunk:
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


def _run(
    ledger: Ledger,
    order: Order,
    environment: _Environment,
    report: Report,
    queue_of: Callable[[RunId], ClaimQueue],
    parallel: int,
) -> None:
    programs: dict[ClaimId, Program] = {}

    def make(held: HeldClaim) -> Mapping[DatasetId, NewManifest]:
        screen = order.screen(held.claim) if order.screen is not None else None
        program = Program(command=order.command, logs=order.logs, stop=order.stop, limits=order.limits, screen=screen)
        programs[held.claim.claim_id] = program
        return program.run(held, environment.refresh())

    def tell(chunk: ChunkResult) -> None:
        program = programs.pop(chunk.claim.claim_id)
        result = ScriptResult(
            claim=chunk.claim,
            result="finished" if chunk.status == "published" else chunk.status,
            exit_code=program.exit_code,
            reason=program.reason if chunk.status == "failed" and program.reason else chunk.reason,
            log=program.log,
            seconds=chunk.seconds,
        )
        report.count(result)
        order.tell(result)

    run_id = begin_run(ledger, order.jobid, runner=order.by)
    succeeded = False
    try:
        queue = queue_of(run_id)
        if ledger.rehearsal:
            _rehearse(order, environment, report, queue)
        else:
            cancellation = Cancellation()
            producer = Producer(ledger, make, tell, at_once=parallel, log=_log, cancellation=cancellation)
            producer.run(queue)
        report.signal = order.stop.signal
        succeeded = not (report.failed or report.lost or report.signal)
    finally:
        if report.begun:
            end_run(ledger, run_id, failed=not succeeded)
        else:
            forget_run(ledger, run_id)


def _rehearse(order: Order, environment: _Environment, report: Report, queue: ClaimQueue) -> None:
    while not queue.is_empty:
        for taken in queue.take(0):
            report.finished += 1
            order.rehearse(taken, environment.refresh())


def _may_run(ledger: Ledger, jobid: JobId) -> bool:
    """A cheap look before a run begins. The claim decides."""
    with ledger.statement() as statement:
        require_job(statement, jobid)
        if registry.is_steered(statement, jobid) and registry.room(statement, jobid).free == 0:
            return False
        return bool(claims.runnable(statement, jobid, 1))


def _claim_or_resubmit(
    ledger: Ledger, order: Order, outputs: Iterable[DatasetId], dataid: DataId, run_id: RunId, requested: datetime
) -> Claim | None:
    """None: the chunk became READY after the request."""
    try:
        return claim(ledger, order.jobid, dataid, run_id)
    except NoGo:
        keys = [ChunkKey(datasetid=output, dataid=dataid) for output in outputs]
        with ledger.statement() as statement:
            statuses = {chunk.status for chunk in chunks.find(statement, keys)}
        if not statuses & {Status.FAILED, Status.READY}:
            raise
        if not resubmit(ledger, keys, by=order.by, reason="odf run --dataid", requested=requested).chunks:
            return None
    return claim(ledger, order.jobid, dataid, run_id)
