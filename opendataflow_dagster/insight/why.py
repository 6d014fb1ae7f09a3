"""why: what keeps a Job, or one of its chunks, from running. The five answers, since when, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from ..ledger import chunks, claims, lookup, overview, staleness, waiting
from ..ledger.chunks import Chunk
from ..ledger.database import Ledger
from ..ledger.registry import Room as Room
from ..ledger.retry import gives_way
from ..ledger.staleness import StaleChunk, StaleCount
from ..ledger.waiting import Asked, Fault
from ..model.errors import UnknownName
from ..model.ids import ChunkKey, DataId, JobId, data_id, job_id
from ..model.status import Status
from ..model.text import counted
from ..model.verdict import CODES, Code, Verdict
from ..protocol.gate import look_at_files, pinned_manifests, pins, require_job
from ..protocol.throttle import room
from .causes import Cause, group_by_cause, normalised
from .obstacle import NOT_EVALUATED, ChunkObstacle, first_obstacle, refusals
from .selection import select_failed

#: How many missing, refused, waiting and held chunks are examined; for the rest only the total is reported.
_EXAMINED = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class WhyChunk:
    verdict: Verdict
    #: When the current refusal began, as far as verdicts were stored.
    since: datetime | None
    outputs: tuple[Chunk, ...]
    #: Those of the outputs that are stale.
    stale: tuple[StaleChunk, ...]
    room: Room
    #: Five yes, and yet it does not run: nobody has asked for it, or the ledger has not looked at it.
    obstacle: ChunkObstacle | None

    @property
    def is_finished(self) -> bool:
        """It has run, or was skipped: that is why it does not run."""
        return bool(self.outputs) and all(chunk.status in (Status.READY, Status.SKIPPED) for chunk in self.outputs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacle:
    """What several chunks share that keeps them from running, or the whole Job (then without an example)."""

    code: str
    cause: str
    count: int
    example: DataId | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WhyJob:
    jobid: JobId
    room: Room
    runnable: int
    #: Chunks that are expected and were not planned, and cannot run.
    missing: int
    #: How many chunks are missing, refused, waiting or held; `asked` of them were examined for obstacles.
    waiting: int
    asked: int
    obstacles: tuple[Obstacle, ...]
    failures: tuple[Cause, ...]
    #: Its outputs that have stale chunks. They block nothing here.
    stale: tuple[StaleCount, ...]


@gives_way
def why_chunk(ledger: Ledger, jobid: str, dataid: str, *, stored: bool = False) -> WhyChunk:
    """`stored`: the newest stored answers instead of new ones."""
    job, chunk = job_id(jobid), data_id(dataid)
    verdict, obstacle = None, None
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        if not stored:
            # Not recorded: a role that can only read gets an answer, too.
            (asked,) = waiting.ask(transaction, job, [chunk])
            read = pins(asked.verdict, pinned_manifests(transaction, [asked.verdict]))
            verdict = asked.verdict.with_problems(look_at_files(read, partial(lookup.root_of, transaction)))
            if verdict.go and not asked.is_evaluated:
                obstacle = first_obstacle(asked)
        history = chunks.verdicts(transaction, job, chunk)
        keys = [ChunkKey(datasetid=output, dataid=chunk) for output in lookup.outputs_of(transaction, job)]
        outputs = chunks.find(transaction, keys)
        stale = staleness.stale_chunks(transaction, [key.datasetid for key in keys], [chunk])
    if verdict is None:
        if not history:
            raise UnknownName(f"{job}/{chunk} has no stored answers; ask now, without --stored")
        verdict = history[-1]
    # A locked output has been locked since its row changed, even if the question was asked later.
    since = [output.modified for output in outputs if verdict.code is Code.LOCKED]
    since += [at for at in (_since(verdict, history),) if at is not None]
    return WhyChunk(
        verdict=verdict,
        since=min(since, default=None),
        outputs=tuple(outputs),
        stale=tuple(stale),
        room=room(ledger, job),
        obstacle=obstacle,
    )


@gives_way
def why_job(ledger: Ledger, jobid: str) -> WhyJob:
    job = job_id(jobid)
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        counts = overview.runnable_count(transaction, job)
        stale = staleness.stale_counts(transaction, lookup.outputs_of(transaction, job))
        faults = waiting.faults(transaction, job)
        overview.allow_table_scans(transaction)
        missing = waiting.missing_chunks(transaction, job, _EXAMINED)
        unready = waiting.unready_chunks(transaction, job, _EXAMINED)
        held = waiting.held_chunks(transaction, job, _EXAMINED)
        stored = {verdict.dataid: verdict for verdict in waiting.refused_chunks(transaction, job, _EXAMINED)}
        refused = waiting.ask(transaction, job, list(stored))
        unplanned = waiting.ask(transaction, job, (*missing.dataids, *unready.dataids))
        locked = claims.ask(transaction, job, held.dataids)
    obstacles = [_refusal(asked, stored[asked.verdict.dataid]) for asked in refused]
    obstacles += [first_obstacle(asked) for asked in unplanned]
    # A held chunk is explained by its last no, which says who holds it.
    obstacles += [
        ChunkObstacle(dataid=verdict.dataid, code=CODES[no.question], reason=no.reason)
        for verdict in locked
        for no in refusals(verdict)[-1:]
    ]
    return WhyJob(
        jobid=job,
        room=room(ledger, job),
        runnable=counts.runnable,
        missing=missing.total,
        waiting=counts.blocked + missing.total + unready.total + held.total,
        asked=len(obstacles),
        obstacles=(*(_of_job(job, fault) for fault in faults), *_grouped(obstacles)),
        failures=tuple(group_by_cause(select_failed(ledger, jobid=job))),
        stale=tuple(stale),
    )


def _refusal(asked: Asked, stored: Verdict) -> ChunkObstacle:
    """What the ledger says now. It cannot see files: what was found about them is stored."""
    if asked.verdict.go and not stored.go:
        return first_obstacle(replace(asked, verdict=stored))
    if asked.verdict.go:
        return first_obstacle(replace(asked, is_evaluated=False))
    return first_obstacle(asked)


def _of_job(jobid: JobId, fault: Fault) -> Obstacle:
    code, reason = _fault(jobid, fault)
    return Obstacle(code=code, cause=reason, count=fault.count, example=fault.dataid, reason=reason)


def _fault(jobid: JobId, fault: Fault) -> tuple[str, str]:
    """Its code, and what is wrong and what to do."""
    name = fault.datasetid
    match fault.kind:
        case "ITEM":
            return Code.WRONG_DATA, (
                f"job {jobid} has an item {fault.itemtype!r} of DataSet {name}, which is neither IN nor OUT and does "
                f"nothing; correct its itemtype in the table dataflow.job"
            )
        case "UNREGISTERED":
            return Code.WRONG_DATA, f"DataSet {name} ({fault.itemtype} of job {jobid}) is not registered; register it"
        case "NO_OUTPUT":
            return Code.WRONG_DATA, f"job {jobid} has no OUT DataSet; register one"
        case "NO_DAY":
            return Code.DATA_NOT_READY, f"today/{fault.dataid} has not begun in the ledger; run: odf heal"
        case "UNSETTLED":
            problem = f": {fault.problem}" if fault.problem else ""
            return (
                NOT_EVALUATED,
                f"after a change of job {jobid}, chunks are still to be evaluated{problem}; run: odf heal",
            )
        case "LEFT_OVER":
            rows = counted(fault.count, "IN row")
            return Code.LOCKED, (
                f"no running chunk holds {rows} of job {jobid}, such as that of {name}/{fault.dataid}; until they "
                f"go, its chunks are locked: run: odf heal --rebuild, or resubmit the outputs"
            )


def _grouped(chunk_obstacles: Sequence[ChunkObstacle]) -> list[Obstacle]:
    groups: dict[tuple[str, str], list[ChunkObstacle]] = {}
    for chunk in chunk_obstacles:
        if chunk.code is not None:
            cause = normalised(chunk.reason, {"{dataid}": chunk.dataid})
            groups.setdefault((chunk.code, cause), []).append(chunk)
    obstacles = [
        Obstacle(code=code, cause=cause, count=len(chunks), example=chunks[0].dataid, reason=chunks[0].reason)
        for (code, cause), chunks in groups.items()
    ]
    return sorted(obstacles, key=lambda obstacle: (-obstacle.count, obstacle.code, obstacle.cause))


def _since(verdict: Verdict, history: Sequence[Verdict]) -> datetime | None:
    since = None
    for earlier in reversed(history):
        if earlier.code != verdict.code:
            break
        since = earlier.asked
    return since
