"""gate: ask the five questions and record the answers; take nothing.

The ledger answers what it knows; the warehouse is asked whether every file of a pinned version is in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..ledger import claims, registry
from ..ledger.database import Ledger, Transaction
from ..model.errors import UnknownName
from ..model.ids import DataId, JobId, data_id, job_id
from ..model.manifest import Manifest
from ..model.verdict import Answer, Question, Verdict
from ..warehouse.placement import misplaced


def gate(ledger: Ledger, jobid: str, dataids: Iterable[str]) -> list[Verdict]:
    """All five answers for each chunk, in the order given."""
    job, chunks = job_id(jobid), [data_id(one) for one in dataids]
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        asked = {one.dataid: one for one in claims.ask(transaction, job, chunks)}
        free, why = room_left(transaction, job)
        if free == 0:
            asked = {dataid: with_no(one, Question.SAFE, why) for dataid, one in asked.items()}
        pinned = manifests_of(transaction, asked.values())
    verdicts = [look_at_files(asked[one], pinned) for one in chunks]
    with ledger.transaction() as transaction:
        claims.record(transaction, job, verdicts)
    return verdicts


def require_job(transaction: Transaction, jobid: JobId) -> None:
    if not registry.is_job(transaction, jobid):
        raise UnknownName(f"job {jobid} is not registered; register it, or correct its name")


def manifests_of(transaction: Transaction, verdicts: Iterable[Verdict]) -> dict[int, Manifest]:
    wanted = {pin.manifest_id for one in verdicts for pin in one.inputs if pin.manifest_id is not None}
    return {one.manifest_id: one for one in claims.manifests(transaction, wanted)} if wanted else {}


def pins(verdict: Verdict, manifests: dict[int, Manifest]) -> tuple[Manifest, ...]:
    return tuple(manifests[pin.manifest_id] for pin in verdict.inputs if pin.manifest_id is not None)


def room_left(transaction: Transaction, jobid: JobId) -> tuple[int | None, str]:
    """How many more chunks an operator lets begin (None: any number), and why not more."""
    if not registry.is_steered(transaction, jobid):
        return None, ""
    room = registry.room(transaction, jobid)
    if room.paused is not None:
        return 0, f"job {jobid} is paused since {room.paused}; resume it"
    return room.free, f"job {jobid} runs at most {room.concurrency} chunks at a time; wait, or throttle it higher"


def look_at_files(verdict: Verdict, manifests: dict[int, Manifest]) -> Verdict:
    """The same verdict, with a no for PLACED where a file is missing or has another size."""
    wrong = [text for one in pins(verdict, manifests) if (text := misplaced(one.location, one.files))]
    if not wrong:
        return verdict
    more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    said = f"{'; '.join(wrong[:3])}{more}; put the files back, or resubmit the chunk they belong to"
    return with_no(verdict, Question.PLACED, said)


def with_no(verdict: Verdict, question: Question, said: str) -> Verdict:
    """The same verdict, with one more no, which the ledger's own questions do not know of."""

    def answer(one: Answer) -> Answer:
        if one.question is not question:
            return one
        return Answer.of(question, said if one.yes else f"{one.reason}; {said}")

    return replace(verdict, answers=tuple(answer(one) for one in verdict.answers))


def runnable(ledger: Ledger, jobid: str, count: int) -> Sequence[DataId]:
    """The next chunks that can run, as advice: the claim decides."""
    with ledger.statement() as statement:
        return claims.runnable(statement, job_id(jobid), count)
