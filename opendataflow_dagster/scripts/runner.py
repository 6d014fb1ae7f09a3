"""Run a script for the next chunk of a Job, for all of them, or for one by name. This is what `odf run` and cron call.

Nothing is claimed before the script, its environment and its passwords are known to be right.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from ..engine.cancellation import Cancellation
from ..engine.claim_queue import ClaimQueue
from ..engine.fingerprint import of_command
from ..engine.producer import HeldClaim, Producer
from ..engine.run_result import ChunkResult
from ..ledger import chunks, claims, registry
from ..ledger.database import Ledger
from ..ledger.waiting import idle_reasons
from ..model.claim import Claim
from ..model.errors import NoGo, OpenDataFlowError
from ..model.ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, RunId, data_id
from ..model.manifest import NewManifest, made_by
from ..model.status import Status
from ..protocol.claim import claim
from ..protocol.force import force
from ..protocol.gate import require_job
from ..protocol.heal import heal
from ..protocol.job_run import begin_run, discard_run, end_run
from ..protocol.resubmit import resubmit
from ..protocol.throttle import room
from .claim_queues import JobEnvironment, NextChunks, SingleChunk
from .order import NEVER_READY, NOT_READY, NOT_SCHEDULED, Nothing, Order, Report, ScriptResult
from .program import Program

# The caller is told about each chunk, so the engine's own log lines have no reader.
_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


def run_next(ledger: Ledger, order: Order, *, everything: bool = False, parallel: int = 1) -> Report:
    """Run the script for the next chunk, or with `everything` until no chunk is ready; `parallel` chunks at a time."""
    if not _may_run(ledger, order.jobid):
        heal(ledger)  # where there is only cron, no sensor restores crashed chunks
        if not _may_run(ledger, order.jobid):
            return Report(nothing=why_nothing(ledger, order.jobid))
    environment = JobEnvironment(ledger, order)
    environment.refresh()
    report = Report()
    _run(
        ledger,
        order,
        environment,
        report,
        lambda run_id: NextChunks(ledger, order, environment, report, run_id, everything, parallel),
        parallel,
    )
    if not (report.finished or report.failed or report.lost or report.signal):
        report.nothing = why_nothing(ledger, order.jobid)
    return report


def run_chunk(ledger: Ledger, order: Order, dataid: str, *, forced: bool = False) -> Report:
    """Run the script for one chunk by name, as a person's request: FAILED and older READY chunks are resubmitted."""
    requested = datetime.now(UTC)
    name = data_id(dataid)
    environment = JobEnvironment(ledger, order)
    outputs = environment.refresh().roots
    report = Report()

    def take(run_id: RunId) -> Claim | None:
        if forced:
            return force(ledger, order.jobid, name, run_id, by=order.by)
        return _claim_or_resubmit(ledger, order, outputs, name, run_id, requested)

    try:
        _run(ledger, order, environment, report, lambda run_id: SingleChunk(take, report, run_id), 1, forced=forced)
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
        counts = idle_reasons(statement, jobid)
    if counts.gave_up:
        return Nothing(
            exit_code=NEVER_READY,
            sentence=f"no chunk of job {jobid} is ready, and {counts.gave_up} exhausted their retries, e.g. "
            f"{counts.gave_up_dataid}; see odf why {jobid}, fix the cause, then odf resubmit",
        )
    waiting = f"; {counts.refused} waiting, e.g. {counts.refused_dataid}" if counts.refused else ""
    waiting += f"; {counts.failed} failed and need a person" if counts.failed else ""
    return Nothing(exit_code=NOT_READY, sentence=f"no chunk of job {jobid} is ready{waiting}; see odf why {jobid}")


def _run(
    ledger: Ledger,
    order: Order,
    environment: JobEnvironment,
    report: Report,
    queue_of: Callable[[RunId], ClaimQueue],
    parallel: int,
    *,
    forced: bool = False,
) -> None:
    programs: dict[ClaimId, Program] = {}
    script = _JobScript(ledger, order, is_registered=not forced)

    def make(held: HeldClaim) -> Mapping[DatasetId, NewManifest]:
        screen = order.screen(held.claim) if order.screen is not None else None
        program = Program(command=order.command, logs=order.logs, stop=order.stop, limits=order.limits, screen=screen)
        programs[held.claim.claim_id] = program
        code = script.current_code()
        return made_by(code, program.run(held, environment.refresh()))

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
            producer = Producer(
                ledger,
                make,
                tell,
                at_once=parallel,
                log=_log,
                cancellation=cancellation,
                is_ending=lambda: order.stop.signal is not None,
            )
            producer.run(queue)
        report.signal = order.stop.signal
        succeeded = not (report.failed or report.lost or report.signal)
    finally:
        if report.begun:
            end_run(ledger, run_id, failed=not succeeded)
        else:
            discard_run(ledger, run_id)


class _JobScript:
    """The code of the Job's outputs. A script may be replaced while it runs for other chunks."""

    def __init__(self, ledger: Ledger, order: Order, *, is_registered: bool) -> None:
        self._ledger, self._order, self._is_registered = ledger, order, is_registered
        self._registered: str | None = None

    def current_code(self) -> str | None:
        code = of_command(self._order.command)
        if self._is_registered and code is not None and code != self._registered:
            # The chunk does not need it, and the next one tries again.
            with suppress(OpenDataFlowError), self._ledger.statement() as statement:
                registry.register_script(statement, self._order.jobid, code)
                self._registered = code
        return code


def _rehearse(order: Order, environment: JobEnvironment, report: Report, queue: ClaimQueue) -> None:
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
