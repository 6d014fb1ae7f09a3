"""plan: what would run. For each chunk of a Job the decision and its reason, in the order in which claims take them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

from ..ledger import chunks, claims, lookup
from ..ledger.database import Ledger, Transaction
from ..ledger.definitions import current_codes
from ..ledger.other_code import OtherCodeRange as OtherCodeRange
from ..ledger.other_code import other_code
from ..ledger.retry import gives_way
from ..model.errors import InvalidInput
from ..model.ids import ChunkKey, DataId, JobId, job_id, natural_key
from ..model.partitions import Partitions, RangePartitions, StaticPartitions, TimePartitions
from ..model.ranges import DataIdRange
from ..model.status import Status
from ..model.verdict import Code, Verdict
from ..protocol.gate import require_job
from .selection import names_and_ranges

#: A plan covers at most so many chunks; a longer range is refused rather than cut.
_MAX_CHUNKS = 20_000
#: Of each output, so many ranges that other code made are listed.
_MOST_RANGES = 20


class Decision(StrEnum):
    RUN = "RUN"  # five yes answers: the next claim takes it
    WAIT = "WAIT"  # an input is not READY
    BLOCKED = "BLOCKED"  # another of the five answers is no
    RUNNING = "RUNNING"  # it is being produced
    NOTHING = "NOTHING"  # it is READY or SKIPPED
    PERSON = "PERSON"  # FAILED, HOLD or a foreign status: an operator must act


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedChunk:
    dataid: DataId
    decision: Decision
    code: Code | None
    reason: str
    #: It has a row. If not, `announce_pending` adds one.
    planned: bool
    #: It is finished, and this is the other code that made it. None: the current code made it, or which is unknown.
    made_by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPlan:
    chunks: tuple[PlannedChunk, ...]
    #: Those of its outputs, within the plan or not.
    other_code: tuple[OtherCodeRange, ...]


@gives_way
def plan_job(ledger: Ledger, jobid: str, words: Sequence[str] = ()) -> JobPlan:
    """`words`: dataids and ranges; empty: all chunks that are not finished."""
    job = job_id(jobid)
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        dataids = _dataids(transaction, job, words)
        outputs = lookup.outputs_of(transaction, job)
        keys = [ChunkKey(datasetid=output, dataid=dataid) for output in outputs for dataid in dataids]
        statuses: dict[DataId, list[str | None]] = {}
        made_by: dict[DataId, str | None] = {}
        for chunk in chunks.find(transaction, keys):
            statuses.setdefault(chunk.dataid, []).append(chunk.status)
            if chunk.is_other_code:
                made_by[chunk.dataid] = chunk.code_version
        verdicts = claims.ask(transaction, job, dataids)
        ranges = other_code(transaction, current_codes(transaction, outputs), _MOST_RANGES)
    planned = [_planned(verdict, statuses.get(verdict.dataid, []), made_by.get(verdict.dataid)) for verdict in verdicts]
    resubmitted = {dataid for dataid, of_chunk in statuses.items() if Status.RESUBMIT in of_chunk}
    planned.sort(key=lambda chunk: (chunk.dataid not in resubmitted, natural_key(chunk.dataid)))
    return JobPlan(chunks=tuple(planned), other_code=tuple(ranges))


def _planned(verdict: Verdict, statuses: Sequence[str | None], made_by: str | None) -> PlannedChunk:
    decision = _decision(verdict, statuses)
    refusals = [answer.reason for answer in verdict.answers if not answer.yes]
    if decision is Decision.NOTHING:
        by_whom = f", made by other code than the current ({made_by})" if made_by else ""
        reason = f"it is finished{by_whom}; resubmit it to produce it again"
    elif decision is Decision.RUN:
        reason = "all five answers are yes"
    else:
        # The obstacle itself: for a chunk that is locked, the last answer names the holder.
        reason = refusals[0] if decision in (Decision.WAIT, Decision.BLOCKED) else refusals[-1]
    return PlannedChunk(
        dataid=verdict.dataid,
        decision=decision,
        code=verdict.code,
        reason=reason,
        planned=bool(statuses),
        made_by=made_by,
    )


def _decision(verdict: Verdict, statuses: Sequence[str | None]) -> Decision:
    if verdict.go:
        return Decision.RUN
    if Status.RUNNING in statuses:
        return Decision.RUNNING
    if statuses and all(word in (Status.READY, Status.SKIPPED) for word in statuses):
        return Decision.NOTHING
    if any(word not in (Status.PENDING, Status.RESUBMIT, Status.READY, Status.SKIPPED) for word in statuses):
        return Decision.PERSON
    return Decision.WAIT if verdict.code is Code.DATA_NOT_READY else Decision.BLOCKED


def _dataids(transaction: Transaction, job: JobId, words: Sequence[str]) -> list[DataId]:
    if not words:
        return lookup.unfinished_chunks(transaction, job, _MAX_CHUNKS)
    outputs = [item for item in lookup.job_datasets(transaction, job) if item.itemtype == "OUT"]
    dataids, ranges = names_and_ranges(transaction, [item.datasetid for item in outputs], words)
    for bounds in ranges:
        dataids += _in_range(transaction, job, outputs[0].partitions if outputs else None, bounds)
    if len(dataids) > _MAX_CHUNKS:
        raise InvalidInput(f"{' '.join(words)} covers more than {_MAX_CHUNKS:,} chunks; plan a shorter range")
    return list(dict.fromkeys(dataids))


def _in_range(
    transaction: Transaction, job: JobId, partitions: Partitions | None, bounds: DataIdRange
) -> Iterable[DataId]:
    """The partitions of the output in this range; without declared partitions, the chunks that exist."""
    match partitions:
        case TimePartitions() as times:
            first, last = bounds.low or times.first, bounds.high or times.last
            if last is None:
                raise InvalidInput(f"job {job}: its partitions have no end; give the end of the range: {first}..LAST")
            _require_partitions(job, times, first, last)
            return islice(times.between(times.time_of(first), times.end_of(last)), _MAX_CHUNKS + 1)
        case RangePartitions() as numbers:
            _require_partitions(job, numbers, *filter(None, (bounds.low, bounds.high)))
            first_number = int(bounds.low.partition("-")[0]) if bounds.low else numbers.first
            last_number = int(bounds.high.partition("-")[2]) if bounds.high else numbers.last
            if first_number > last_number:
                return []
            return islice(replace(numbers, first=first_number, last=last_number).all(), _MAX_CHUNKS + 1)
        case StaticPartitions(keys=keys):
            return [dataid for dataid in keys if dataid in bounds]
        case None:
            return [dataid for dataid in lookup.known_dataids(transaction, job) if dataid in bounds]


def _require_partitions(job: JobId, partitions: TimePartitions | RangePartitions, *dataids: str) -> None:
    for dataid in dataids:
        if not partitions.has(dataid):
            raise InvalidInput(f"job {job}: {dataid} is not one of its partitions; start and end the range with one")
