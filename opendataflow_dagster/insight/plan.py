"""forecast: what would run? For each chunk of a Job the decision, and the reason for it. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

from ..ledger import chunks, claims, registry
from ..ledger.database import Ledger, Row, Transaction
from ..model.errors import InvalidInput
from ..model.ids import ChunkKey, DataId, DatasetId, JobId, data_id, job_id, natural_key
from ..model.partitions import RangePartitions, StaticPartitions, TimePartitions, partitions_from_json
from ..model.status import Status
from ..model.verdict import Code, Verdict
from ..protocol.gate import require_job

#: So many chunks are asked at once; a range that is longer is refused, not cut.
MOST = 20_000


class Decision(StrEnum):
    RUN = "RUN"  # five yes: the next claim takes it
    WAIT = "WAIT"  # an input is not READY
    BLOCKED = "BLOCKED"  # another of the five is a no
    RUNNING = "RUNNING"  # somebody makes it
    NOTHING = "NOTHING"  # it is READY, or deliberately SKIPPED
    PERSON = "PERSON"  # FAILED, on HOLD or of a foreign status: a person must act


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreseen:
    dataid: DataId
    decision: Decision
    code: Code | None
    reason: str
    #: Does anybody know of it? If not, `announce` makes it PENDING.
    planned: bool


def forecast(ledger: Ledger, jobid: str, words: Sequence[str] = ()) -> list[Foreseen]:
    """No words: all its chunks that are not finished. RESUBMIT first and then in natural order, as claims take them."""
    job = job_id(jobid)
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        items = transaction.rows("job_items", jobid=job)
        dataids = _wanted(transaction, job, items, words)
        outputs = [DatasetId(row["datasetid"]) for row in items if row["itemtype"] == "OUT"]
        rows = chunks.find(transaction, [ChunkKey(datasetid=one, dataid=each) for one in outputs for each in dataids])
        verdicts = claims.ask(transaction, job, dataids)
    statuses: dict[DataId, list[str | None]] = {}
    for row in rows:
        statuses.setdefault(row.dataid, []).append(row.status)
    found = [_foreseen(one, statuses.get(one.dataid, [])) for one in verdicts]
    again = {dataid for dataid, words_of in statuses.items() if Status.RESUBMIT in words_of}
    return sorted(found, key=lambda one: (one.dataid not in again, natural_key(one.dataid)))


def announce_chunks(ledger: Ledger, jobid: str, dataids: Sequence[DataId], *, by: str) -> int:
    """PENDING, so that they run as soon as they can; how many are new."""
    job = job_id(jobid)
    with ledger.transaction(actor=by) as transaction:
        if listed := [row for row in transaction.rows("job_items", jobid=job) if row["mapping"] == "listed"]:
            raise InvalidInput(
                f"job {job} says in its code which chunks of {listed[0]['datasetid']} it needs; "
                f"plan its chunks from there (protocol.register.plan)"
            )
        return registry.announce_chunks(transaction, job, dataids)


def _foreseen(verdict: Verdict, statuses: Sequence[str | None]) -> Foreseen:
    decision = _decision(verdict, statuses)
    no = [one.reason for one in verdict.answers if not one.yes]
    if decision is Decision.NOTHING:
        reason = "it is there; resubmit it to make it anew"
    elif decision is Decision.RUN:
        reason = "five yes"
    else:
        # The obstacle itself: of a chunk that somebody holds, the last answer says who.
        reason = no[0] if decision in (Decision.WAIT, Decision.BLOCKED) else no[-1]
    return Foreseen(dataid=verdict.dataid, decision=decision, code=verdict.code, reason=reason, planned=bool(statuses))


def _decision(verdict: Verdict, statuses: Sequence[str | None]) -> Decision:
    if verdict.go:
        return Decision.RUN
    if Status.RUNNING in statuses:
        return Decision.RUNNING
    if statuses and all(one in (Status.READY, Status.SKIPPED) for one in statuses):
        return Decision.NOTHING
    if any(one not in (Status.PENDING, Status.RESUBMIT, Status.READY, Status.SKIPPED) for one in statuses):
        return Decision.PERSON
    return Decision.WAIT if verdict.code is Code.DATA_NOT_READY else Decision.BLOCKED


def _wanted(transaction: Transaction, job: JobId, items: Sequence[Row], words: Sequence[str]) -> list[DataId]:
    if not words:
        return [DataId(row["dataid"]) for row in transaction.rows("job_chunks", jobid=job, count=MOST)]
    found: list[DataId] = []
    for word in words:
        low, dots, high = data_id(word).partition("..")
        found += _between(transaction, job, items, low, high) if dots else [DataId(word)]
    if len(found) > MOST:
        raise InvalidInput(f"{' '.join(words)} are more than {MOST:,} chunks; ask for fewer at a time")
    return list(dict.fromkeys(found))


def _refuse_strangers(job: JobId, partitions: TimePartitions | RangePartitions, *bounds: str) -> None:
    for bound in bounds:
        if not partitions.has(bound):
            raise InvalidInput(f"{bound} is no chunk of {job}; begin and end the range with chunks that it has")


def _between(transaction: Transaction, job: JobId, items: Sequence[Row], low: str, high: str) -> list[DataId]:
    """What the partitions of the output have; where any dataid goes, the chunks that are there."""
    output = next((row for row in items if row["itemtype"] == "OUT"), None)
    match partitions_from_json(output["partitions"]) if output and output["partitions"] else None:
        case TimePartitions() as times:
            first, last = low or times.first, high or times.last
            if last is None:
                raise InvalidInput(f"the chunks of {job} have no end; say where the range ends: {first}..LAST")
            _refuse_strangers(job, times, first, last)
            return list(islice(times.between(times.time_of(first), times.end_of(last)), MOST + 1))
        case StaticPartitions(keys=keys):
            candidates = list(keys)
        case RangePartitions() as numbers:
            _refuse_strangers(job, numbers, *filter(None, (low, high)))
            begin = int(low.partition("-")[0]) if low else numbers.first
            end = int(high.partition("-")[2]) if high else numbers.last
            part = replace(numbers, first=begin, last=end) if begin <= end else None
            return list(islice(part.all(), MOST + 1)) if part else []
        case _:
            candidates = [DataId(row["dataid"]) for row in transaction.rows("chunks_around_job", jobid=job)]
    chosen = [
        one
        for one in candidates
        if (not low or natural_key(one) >= natural_key(low)) and (not high or natural_key(one) <= natural_key(high))
    ]
    return sorted(chosen, key=natural_key)
