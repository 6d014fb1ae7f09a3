"""why: what keeps a Job, or one chunk of it, from running? The five answers, since when, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..ledger import chunks, claims, rows
from ..ledger.chunks import Chunk
from ..ledger.database import Ledger
from ..ledger.registry import Room
from ..model.errors import UnknownName
from ..model.ids import ChunkKey, DataId, DatasetId, JobId, data_id, job_id
from ..model.verdict import CODES, Answer, Code, Verdict
from ..protocol.gate import look_at_files, pinned_manifests, pins, require_job
from ..protocol.throttle import room
from .causes import Cause, causes, normalised
from .selection import failed

#: So many chunks of each kind are asked; of more it is said how many there are.
_ASKED = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Why:
    """One chunk."""

    verdict: Verdict
    #: Since when the first no is the first no, as far as answers were stored.
    since: datetime | None
    #: Its outputs, as they are.
    outputs: tuple[Chunk, ...]
    room: Room


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacle:
    """The same no, for some chunks."""

    code: str
    cause: str
    count: int
    example: DataId
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WhyJob:
    """A whole Job: what could run, what is refused or waits, and what failed."""

    jobid: JobId
    room: Room
    runnable: int
    #: How many are refused, wait, or are held; the obstacles are those of the first that were asked.
    waiting: int
    asked: int
    obstacles: tuple[Obstacle, ...]
    failures: tuple[Cause, ...]


def why(ledger: Ledger, jobid: str, dataid: str, *, stored: bool = False) -> Why:
    """`stored`: the newest stored answers instead of new ones."""
    job, chunk = job_id(jobid), data_id(dataid)
    verdict = None
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        if not stored:
            # Asked, not stored: who may only read shall be told, too.
            (asked,) = claims.ask(transaction, job, [chunk])
            verdict = look_at_files(asked, pins(asked, pinned_manifests(transaction, [asked])))
        kept = chunks.verdicts(transaction, job, chunk)
        outputs = [DatasetId(row["datasetid"]) for row in transaction.rows("outputs_of", jobid=job)]
        found = chunks.find(transaction, [ChunkKey(datasetid=one, dataid=chunk) for one in outputs])
    if verdict is None:
        if not kept:
            raise UnknownName(f"no answers are stored for {job}/{chunk}; ask now, without --stored")
        verdict = kept[-1]
    # Who holds the output has held it since its row changed, whenever somebody asked first.
    since = [one.modified for one in found if verdict.code is Code.LOCKED]
    since += [at for at in (_since(verdict, kept),) if at is not None]
    return Why(verdict=verdict, since=min(since, default=None), outputs=tuple(found), room=room(ledger, job))


def why_job(ledger: Ledger, jobid: str) -> WhyJob:
    job = job_id(jobid)
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        refused = [rows.verdict(job, row) for row in transaction.rows("blocked_causes", jobid=job, count=_ASKED)]
        unready = transaction.rows("unready_chunks", jobid=job, count=_ASKED)
        held = transaction.rows("held_chunks", jobid=job, count=_ASKED)
        waiting = claims.ask(transaction, job, [DataId(row["dataid"]) for row in unready])
        locked = claims.ask(transaction, job, [DataId(row["dataid"]) for row in held])
        counted = transaction.one("runnable_count", jobid=job)
    # What stands in the way first; of what is held that is who holds it, whatever else is missing.
    noes = [(one, _noes(one)[0]) for one in [*refused, *waiting] if not one.go]
    noes += [(one, _noes(one)[-1]) for one in locked if not one.go]
    return WhyJob(
        jobid=job,
        room=room(ledger, job),
        runnable=counted["runnable"],
        waiting=counted["blocked"] + sum(found[0]["total"] for found in (unready, held) if found),
        asked=len(refused) + len(waiting) + len(locked),
        obstacles=tuple(_obstacles(noes)),
        failures=tuple(causes(failed(ledger, jobid=job))),
    )


def _noes(verdict: Verdict) -> list[Answer]:
    return [one for one in verdict.answers if not one.yes]


def _obstacles(noes: Sequence[tuple[Verdict, Answer]]) -> list[Obstacle]:
    groups: dict[tuple[str, str], list[tuple[Verdict, str]]] = {}
    for one, no in noes:
        cause = normalised(no.reason, {"{dataid}": one.dataid})
        groups.setdefault((CODES[no.question], cause), []).append((one, no.reason))
    found = [
        Obstacle(code=code, cause=cause, count=len(members), example=members[0][0].dataid, reason=members[0][1])
        for (code, cause), members in groups.items()
    ]
    return sorted(found, key=lambda one: (-one.count, one.code, one.cause))


def _since(verdict: Verdict, kept: Sequence[Verdict]) -> datetime | None:
    since = None
    for one in reversed(kept):
        if one.code != verdict.code:
            break
        since = one.asked
    return since
