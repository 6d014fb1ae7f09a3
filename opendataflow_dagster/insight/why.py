"""why: what keeps a Job, or one of its chunks, from running. The five answers, since when, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from ..ledger import chunks, claims, lookup, overview, waiting
from ..ledger.chunks import Chunk
from ..ledger.database import Ledger
from ..ledger.registry import Room as Room
from ..model.errors import UnknownName
from ..model.ids import ChunkKey, DataId, JobId, data_id, job_id
from ..model.verdict import CODES, Answer, Code, Verdict
from ..protocol.gate import look_at_files, pinned_manifests, pins, require_job
from ..protocol.throttle import room
from .causes import Cause, group_by_cause, normalised
from .selection import select_failed

#: How many refused, waiting and held chunks are examined; for the rest only the total is reported.
_EXAMINED = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class WhyChunk:
    verdict: Verdict
    #: When the current refusal began, as far as verdicts were stored.
    since: datetime | None
    outputs: tuple[Chunk, ...]
    room: Room


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacle:
    """One refusal that several chunks share."""

    code: str
    cause: str
    count: int
    example: DataId
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WhyJob:
    jobid: JobId
    room: Room
    runnable: int
    #: How many chunks are refused, waiting or held; `asked` of them were examined for obstacles.
    waiting: int
    asked: int
    obstacles: tuple[Obstacle, ...]
    failures: tuple[Cause, ...]


def why_chunk(ledger: Ledger, jobid: str, dataid: str, *, stored: bool = False) -> WhyChunk:
    """`stored`: the newest stored answers instead of new ones."""
    job, chunk = job_id(jobid), data_id(dataid)
    verdict = None
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        if not stored:
            # Not recorded: a role that can only read gets an answer, too.
            (asked,) = claims.ask(transaction, job, [chunk])
            read = pins(asked, pinned_manifests(transaction, [asked]))
            verdict = asked.with_problems(look_at_files(read, partial(lookup.root_of, transaction)))
        history = chunks.verdicts(transaction, job, chunk)
        keys = [ChunkKey(datasetid=output, dataid=chunk) for output in lookup.outputs_of(transaction, job)]
        outputs = chunks.find(transaction, keys)
    if verdict is None:
        if not history:
            raise UnknownName(f"{job}/{chunk} has no stored answers; ask now, without --stored")
        verdict = history[-1]
    # A locked output has been locked since its row changed, even if the question was asked later.
    since = [output.modified for output in outputs if verdict.code is Code.LOCKED]
    since += [at for at in (_since(verdict, history),) if at is not None]
    return WhyChunk(verdict=verdict, since=min(since, default=None), outputs=tuple(outputs), room=room(ledger, job))


def why_job(ledger: Ledger, jobid: str) -> WhyJob:
    job = job_id(jobid)
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        counts = overview.runnable_count(transaction, job)
        unready = waiting.unready_chunks(transaction, job, _EXAMINED)
        held = waiting.held_chunks(transaction, job, _EXAMINED)
        waiting_verdicts = waiting.refused_chunks(transaction, job, _EXAMINED)
        waiting_verdicts += claims.ask(transaction, job, unready.dataids)
        held_verdicts = claims.ask(transaction, job, held.dataids)
    # A waiting chunk is explained by its first no; a held one by its last, which says who holds it.
    refusals = [(verdict, _refused(verdict)[0]) for verdict in waiting_verdicts if not verdict.go]
    refusals += [(verdict, _refused(verdict)[-1]) for verdict in held_verdicts if not verdict.go]
    return WhyJob(
        jobid=job,
        room=room(ledger, job),
        runnable=counts.runnable,
        waiting=counts.blocked + unready.total + held.total,
        asked=len(waiting_verdicts) + len(held_verdicts),
        obstacles=tuple(_obstacles(refusals)),
        failures=tuple(group_by_cause(select_failed(ledger, jobid=job))),
    )


def _refused(verdict: Verdict) -> list[Answer]:
    return [answer for answer in verdict.answers if not answer.yes]


def _obstacles(refusals: Sequence[tuple[Verdict, Answer]]) -> list[Obstacle]:
    groups: dict[tuple[str, str], list[tuple[Verdict, str]]] = {}
    for verdict, answer in refusals:
        cause = normalised(answer.reason, {"{dataid}": verdict.dataid})
        groups.setdefault((CODES[answer.question], cause), []).append((verdict, answer.reason))
    obstacles = [
        Obstacle(code=code, cause=cause, count=len(members), example=members[0][0].dataid, reason=members[0][1])
        for (code, cause), members in groups.items()
    ]
    return sorted(obstacles, key=lambda obstacle: (-obstacle.count, obstacle.code, obstacle.cause))


def _since(verdict: Verdict, history: Sequence[Verdict]) -> datetime | None:
    since = None
    for earlier in reversed(history):
        if earlier.code != verdict.code:
            break
        since = earlier.asked
    return since
