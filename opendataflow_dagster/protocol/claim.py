"""claim: one short transaction that locks a chunk and takes it, if it has five yes.

The five questions are asked when a chunk becomes runnable, and again whenever a fact behind an answer changes; the
ledger keeps the answers with the chunk's row of the runnable set. The claim locks that row, sees that the evidence
still stands, and looks at what no ledger knows: whether every file is in its place. The answers are stored with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from ..ledger import claims, registry
from ..ledger.claims import Taken
from ..ledger.database import Ledger, Transaction
from ..model.claim import Claim
from ..model.errors import InputsHaveFiles, InvalidInput, LedgerConflict, NoGo, StaleAnswers
from ..model.ids import DataId, JobId, RunId, data_id, job_id
from ..model.verdict import Question, Verdict
from .gate import look_at_files, manifests_of, pins, require_job, room_left, with_no

# How long a claim begins anew, after it gave way to someone or found a chunk changed.
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """What was asked for by name: the claims, and the verdicts of those that were refused."""

    claims: tuple[Claim, ...]
    refused: tuple[Verdict, ...]
    #: The job is at its concurrency limit, and not paused: LOCKED refusals end when a running chunk does.
    at_limit: bool = False


def claim_next(ledger: Ledger, jobid: str, count: int = 1, run_id: RunId | None = None) -> list[Claim]:
    """The next chunks of a Job, at most `count`; none when there is nothing to do now."""
    if count < 1:
        raise InvalidInput(f"cannot claim {count} chunks; ask for at least one")
    job = job_id(jobid)
    turned = False
    until = monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            found = _take_next(ledger, job, count, run_id)
        except (LedgerConflict, _Misplaced) as problem:
            _begin_anew(ledger, job, problem, until)
            continue
        if found or turned or not _turn_the_day(ledger, job):
            return found
        turned = True


def _take_next(ledger: Ledger, job: JobId, count: int, run_id: RunId | None) -> list[Claim]:
    """One statement where there are no files to look at; a transaction around it where there are."""
    if job not in ledger.jobs_with_files:
        try:
            with ledger.statement() as statement:
                return claims.take_next(statement, job, count, run_id, with_files=False).claims
        except InputsHaveFiles:
            ledger.jobs_with_files.add(job)
    with ledger.transaction() as transaction:
        return _looked_at(transaction, claims.take_next(transaction, job, count, run_id, with_files=True))


def claim(ledger: Ledger, jobid: str, dataid: str, run_id: RunId | None = None) -> Claim:
    """This chunk, or NoGo with its five answers."""
    found = claim_many(ledger, jobid, [dataid], run_id)
    if found.refused:
        raise NoGo(found.refused[0])
    return found.claims[0]


def claim_many(ledger: Ledger, jobid: str, dataids: Iterable[str], run_id: RunId | None = None) -> Claimed:
    """These chunks, whether they were planned or not; those that get a no come back with it."""
    job, wanted = job_id(jobid), list(dict.fromkeys(data_id(one) for one in dataids))
    refused: dict[DataId, Verdict] = {}
    until = monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            with ledger.transaction() as transaction:
                require_job(transaction, job)
                claims.give_way(transaction)
                names = [one for one in wanted if one not in refused]
                found, also_refused, at_limit = _take_or_refuse(transaction, job, names, run_id)
        except (LedgerConflict, _Misplaced) as problem:
            _begin_anew(ledger, job, problem, until)
            if isinstance(problem, _Misplaced):
                refused |= {one.dataid: one for one in problem.verdicts}
            continue
        return Claimed(claims=tuple(found), refused=(*refused.values(), *also_refused), at_limit=at_limit)


def _take_or_refuse(
    transaction: Transaction, job: JobId, names: Sequence[DataId], run_id: RunId | None
) -> tuple[list[Claim], list[Verdict], bool]:
    free, why = room_left(transaction, job)
    names, crowded = names[:free], names[len(names) if free is None else free :]
    at_limit = bool(crowded) and registry.room(transaction, job).paused is None
    taken = claims.take_named(transaction, job, names, run_id)
    held = {one.dataid for one in taken.claims}
    asked = claims.ask(transaction, job, [one for one in names if one not in held])
    found = _looked_at(transaction, taken)
    # Nobody has planned these, and nothing speaks against them: their name is the plan.
    if unplanned := [one.dataid for one in asked if one.go]:
        registry.announce_chunks(transaction, job, unplanned)
        found += _looked_at(transaction, claims.take_named(transaction, job, unplanned, run_id))
    refused = [one for one in asked if not one.go]
    refused += [with_no(one, Question.SAFE, why) for one in claims.ask(transaction, job, crowded)]
    claims.record(transaction, job, refused)
    if missing := sorted(set(unplanned) - {one.dataid for one in found}):
        # In a strictly ordered Job one of them takes the turn of the others.
        asked = claims.ask(transaction, job, missing)
        if any(one.go for one in asked):
            raise StaleAnswers(list(missing))
        claims.record(transaction, job, asked)
        refused += asked
    return found, refused, at_limit


class _Misplaced(Exception):
    """Undoes the claim: files of the inputs of these chunks are not in their place."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self.verdicts = verdicts


def _looked_at(transaction: Transaction, taken: Taken) -> list[Claim]:
    """The claims, with the versions of their inputs, every file of which is in its place."""
    if not taken.have_files:
        return taken.claims
    verdicts = [one.verdict for one in taken.claims]
    manifests = manifests_of(transaction, verdicts)
    looked = [look_at_files(one, manifests) for one in verdicts]
    if misplaced := [replace(one, claim_id=None) for one in looked if not one.go]:
        raise _Misplaced(misplaced)
    return [replace(one, manifests=pins(one.verdict, manifests)) for one in taken.claims]


def _begin_anew(ledger: Ledger, job: JobId, problem: LedgerConflict | _Misplaced, until: float) -> None:
    """Bring the answers of changed chunks up to date, so that the next round passes them over or takes them."""
    if monotonic() > until:
        raise LedgerConflict(f"the chunks of job {job} are much in use just now; try again") from problem
    with ledger.transaction() as transaction:
        if isinstance(problem, StaleAnswers):
            claims.settle(transaction, job, [DataId(one) for one in problem.dataids])
        elif isinstance(problem, _Misplaced):
            claims.record(transaction, job, problem.verdicts)
            claims.block(transaction, job, problem.verdicts)


def _turn_the_day(ledger: Ledger, job: JobId) -> bool:
    """Nothing to do: is the Job known at all, and has its `today` become another day?"""
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        return bool(transaction.value("turn_the_day"))
