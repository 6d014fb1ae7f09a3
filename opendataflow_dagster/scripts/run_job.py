"""Run a Job's script for its next chunk, for all of them, or for one by name; what `odf run` and cron call.

Nothing is claimed before the script, its environment and its passwords are known to be right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final

from ..ledger import chunks, claims, registry, waiting
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost, NoGo, ScriptFailed
from ..model.ids import ChunkKey, DataId, DatasetId, JobId, RunId, data_id
from ..model.status import Status
from ..protocol.claim import claim, claim_next
from ..protocol.force import force
from ..protocol.gate import require_job
from ..protocol.heal import heal
from ..protocol.job_run import begin_run, discard_run, end_run
from ..protocol.release import abandon
from ..protocol.resubmit import resubmit
from ..protocol.throttle import room
from ..secrets.passphrase import passphrase
from .environment import Provision, provision
from .output import Screen
from .process import Stop
from .run_script import Limits, Outcome, log_path, run_script

NOT_READY: Final = 1
NEVER_READY: Final = 2
NOT_SCHEDULED: Final = 3
#: And the number of the signal. Not 128 and the number, as a shell has it: 129 to 131 are errors of ours.
SIGNALLED: Final = 160

# The registry may change while `--all` goes on for hours.
_PROVISION_SECONDS = 5.0


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
    #: Called with each outcome, in the thread that had it.
    tell: Callable[[Outcome], None] = lambda _: None
    #: Called in a rehearsal instead of the script: the chunk that it would run for, and what it would be given.
    rehearse: Callable[[Claim, Provision], None] = lambda _, __: None


@dataclass(frozen=True, kw_only=True, slots=True)
class Nothing:
    """Why there was nothing to run, and what that is to a scheduler."""

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
    _lock: Lock = field(default_factory=Lock, repr=False)

    def count(self, outcome: Outcome) -> None:
        with self._lock:
            match outcome.result:
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
    """The next chunk; `everything`: until nothing is ready. `parallel`: so many at a time."""
    if not _may_run(ledger, order.jobid):
        heal(ledger)  # who only has cron has nobody else to look after crashes and the calendar
        if not _may_run(ledger, order.jobid):
            return Report(nothing=why_nothing(ledger, order.jobid))
    provisioned = _Provisioned(ledger, order)
    provisioned.now()

    def slot(run_id: RunId, report: Report) -> None:
        while order.stop.signal is None:
            found = provisioned.now()
            taken = claim_next(ledger, order.jobid, 1, run_id)
            if not taken and everything:
                heal(ledger)
                taken = claim_next(ledger, order.jobid, 1, run_id)
            if not taken:
                return
            _run(ledger, order, found, taken[0], report)
            if not everything:
                return

    report = _in_a_run(ledger, order, slot, parallel)
    if not (report.finished or report.failed or report.lost or report.signal):
        report.nothing = why_nothing(ledger, order.jobid)
    return report


def run_chunk(ledger: Ledger, order: Order, dataid: str, *, forced: bool = False) -> Report:
    """One chunk by name: an act of a person. If it FAILED, or is READY since before, that person resubmits it."""
    asked = datetime.now(UTC)
    name = data_id(dataid)
    found = _Provisioned(ledger, order).now()

    def slot(run_id: RunId, report: Report) -> None:
        if forced:
            taken: Claim | None = force(ledger, order.jobid, name, run_id, by=order.by)
        else:
            taken = _claim_or_resubmit(ledger, order, found.roots, name, run_id, asked)
        if taken is None:
            report.finished += 1
        else:
            _run(ledger, order, found, taken, report)

    try:
        return _in_a_run(ledger, order, slot, 1)
    except NoGo:
        if room(ledger, order.jobid).paused is None:
            raise
        return Report(nothing=why_nothing(ledger, order.jobid))


def _may_run(ledger: Ledger, jobid: JobId) -> bool:
    """As advice: the claim decides."""
    with ledger.statement() as statement:
        require_job(statement, jobid)
        if registry.is_steered(statement, jobid) and registry.room(statement, jobid).free == 0:
            return False
        return bool(claims.runnable(statement, jobid, 1))


def why_nothing(ledger: Ledger, jobid: JobId) -> Nothing:
    now = room(ledger, jobid)
    if now.paused is not None:
        return Nothing(
            exit_code=NOT_SCHEDULED,
            sentence=f"job {jobid} is paused (since {now.paused}); resume it with: odf resume {jobid}",
        )
    if now.free == 0:
        return Nothing(
            exit_code=NOT_READY,
            sentence=f"job {jobid} is at its concurrency limit ({now.running} running); retry later",
        )
    with ledger.statement() as statement:
        idle = waiting.idle_reasons(statement, jobid)
    if idle.gave_up:
        return Nothing(
            exit_code=NEVER_READY,
            sentence=f"job {jobid} has no ready chunk, and {idle.gave_up} exhausted their retries, e.g. "
            f"{idle.gave_up_dataid}; see the cause (odf why {jobid}), fix it, and resubmit",
        )
    waits = f"; {idle.refused} wait, e.g. {idle.refused_dataid}" if idle.refused else ""
    waits += f"; {idle.failed} failed and need an operator" if idle.failed else ""
    return Nothing(exit_code=NOT_READY, sentence=f"job {jobid} has no ready chunk{waits}; see: odf why {jobid}")


class _Provisioned:
    """The environment of the Job's scripts, looked up again when it is some seconds old."""

    def __init__(self, ledger: Ledger, order: Order) -> None:
        self._ledger, self._order = ledger, order
        self._passphrase = cache(passphrase)
        self._found: tuple[float, Provision] | None = None

    def now(self) -> Provision:
        if self._found is None or time.monotonic() - self._found[0] > _PROVISION_SECONDS:
            found = provision(self._ledger, self._order.jobid, self._passphrase)
            found.refuse_too_much(self._order.command)
            self._found = time.monotonic(), found
        return self._found[1]


def _in_a_run(ledger: Ledger, order: Order, slot: Callable[[RunId, Report], None], parallel: int) -> Report:
    run_id = begin_run(ledger, order.jobid, runner=order.by)
    report = Report()
    ended_well = False
    try:
        if parallel == 1:
            slot(run_id, report)
        else:
            with ThreadPoolExecutor(parallel) as threads:
                for one in [threads.submit(slot, run_id, report) for _ in range(parallel)]:
                    one.result()
        report.signal = order.stop.signal
        ended_well = not (report.failed or report.lost or report.signal)
    finally:
        if report.begun:
            end_run(ledger, run_id, failed=not ended_well)
        else:
            discard_run(ledger, run_id)
    return report


def _run(ledger: Ledger, order: Order, found: Provision, taken: Claim, report: Report) -> None:
    report.begun = True
    if ledger.rehearsal:
        report.finished += 1
        order.rehearse(taken, found)
        return
    if order.stop.signal is not None:
        abandon(ledger, [taken], "odf was told to end before the script began")
        return
    outcome = run_script(
        ledger,
        taken,
        order.command,
        environment=found.environment(taken),
        log_path=log_path(order.logs, taken),
        places=found.places(taken),
        secrets=found.secrets,
        screen=order.screen(taken) if order.screen is not None else None,
        stop=order.stop,
        limits=order.limits,
    )
    report.count(outcome)
    order.tell(outcome)


def _claim_or_resubmit(
    ledger: Ledger, order: Order, outputs: Iterable[DatasetId], dataid: DataId, run_id: RunId, asked: datetime
) -> Claim | None:
    """None: it became READY after it was asked for, which is what was asked for."""
    try:
        return claim(ledger, order.jobid, dataid, run_id)
    except NoGo:
        keys = [ChunkKey(datasetid=one, dataid=dataid) for one in outputs]
        with ledger.statement() as statement:
            over = [one for one in chunks.find(statement, keys) if one.status in (Status.FAILED, Status.READY)]
        if not over:
            raise
        if not resubmit(ledger, keys, by=order.by, reason="odf run --dataid", requested=asked).chunks:
            return None
    return claim(ledger, order.jobid, dataid, run_id)
