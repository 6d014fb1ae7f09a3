"""claim: take a chunk, if all five answers are yes.

The five questions are asked when a chunk becomes runnable, and again whenever a fact behind an answer changes; the
ledger keeps the answers with the chunk's row of the runnable set. A claim first looks at what no ledger knows, whether
every file of the inputs is in its place, and then takes the chunk in one short transaction, in which the evidence must
still be what was looked at. So a slow file system never holds a lock. The answers are stored with the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import randint

from ..ledger import claims, lookup, registry
from ..ledger.claims import Candidate
from ..ledger.database import Ledger
from ..ledger.retry import PATIENCE_SECONDS, Pauses, refuse_to_wait
from ..ledger.settling import settle
from ..model.claim import Claim
from ..model.errors import InvalidInput, LedgerConflict, NoGo, OpenDataFlowError, StaleAnswers
from ..model.ids import DataId, JobId, RunId, data_id, job_id
from ..model.verdict import Verdict
from .gate import look_at_files, refuse_unknown_job, require_job
from .release import abandon

# A claim that lost its candidates to others tries later ones, up to about this many.
_MOST_CANDIDATES = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """Chunks that were asked for by name: the claims, and the verdicts of those that were refused."""

    claims: tuple[Claim, ...]
    refused: tuple[Verdict, ...]
    #: The Job is at its concurrency limit: some were refused for that alone, and may be claimed later.
    at_limit: bool = False


def claim_next(ledger: Ledger, jobid: str, count: int = 1, run_id: RunId | None = None) -> list[Claim]:
    """The next chunks of a Job, at most `count`; none when nothing can run now."""
    if count < 1:
        raise InvalidInput(f"cannot claim {count} chunks; ask for at least one")
    job, skip, looked_further, is_last = job_id(jobid), 0, False, False
    claimed: list[Claim] = []
    pauses = Pauses(PATIENCE_SECONDS)
    with _given_back_on_error(ledger, claimed):
        while True:
            wanted = min(count - len(claimed), _MOST_CANDIDATES)
            try:
                with ledger.statement() as statement:
                    shown = _MOST_CANDIDATES if is_last else wanted
                    candidates = claims.next_candidates(statement, job, shown, skip)
                if not candidates and not skip:
                    if claimed or looked_further:
                        return claimed
                    _look_further(ledger, job)
                    looked_further = True
                    continue
                placed, _ = _look_at_files(ledger, job, candidates)
                if candidates and not placed:
                    continue  # these are blocked now, and others come next
                with ledger.statement() as statement:
                    taken = claims.claim(statement, job, placed, count=wanted, run_id=run_id)
            except LedgerConflict as conflict:
                _give_way(ledger, job, conflict, pauses)
                continue
            if taken is None:
                refuse_unknown_job(ledger, job)
            claimed += taken.claims
            is_last = is_last or len(taken.claims) == wanted or (not skip and len(candidates) < wanted)
            if is_last or taken.free == 0:
                return claimed
            if len(candidates) < wanted or skip >= _MOST_CANDIDATES:
                skip, is_last = 0, True  # once more, at everything
            elif len(taken.claims) < len(placed):
                # The others went to processes that looked at the same moment: look behind them, each at another place.
                skip += wanted * randint(1, 3)  # noqa: S311


def claim(ledger: Ledger, jobid: str, dataid: str, run_id: RunId | None = None) -> Claim:
    """This chunk, or NoGo with its five answers."""
    claimed = claim_many(ledger, jobid, [dataid], run_id)
    if claimed.refused:
        raise NoGo(claimed.refused[0])
    return claimed.claims[0]


def claim_many(ledger: Ledger, jobid: str, dataids: Iterable[str], run_id: RunId | None = None) -> Claimed:
    """These chunks, whether they were planned or not; those that get a no come back with it."""
    job, waiting = job_id(jobid), list(dict.fromkeys(data_id(dataid) for dataid in dataids))
    claimed: list[Claim] = []
    refused: list[Verdict] = []
    pauses = Pauses(PATIENCE_SECONDS)
    with _given_back_on_error(ledger, claimed):
        while True:
            try:
                with ledger.statement() as statement:
                    candidates = claims.named_candidates(statement, job, waiting)
                placed, misplaced = _look_at_files(ledger, job, candidates)
                without_files = {verdict.dataid for verdict in misplaced}
                waiting = [dataid for dataid in waiting if dataid not in without_files]
                refused += misplaced
                with ledger.statement() as statement:
                    taken = claims.claim(statement, job, placed, count=len(waiting), run_id=run_id, named=waiting)
                if taken is None:
                    refuse_unknown_job(ledger, job)
                claimed += taken.claims
                refused += [verdict for verdict in taken.refused if not verdict.go]
                at_limit = taken.free == 0 and not taken.is_paused
                # Nothing speaks against the rest: they are not planned yet, or something changed a moment ago.
                waiting = [verdict.dataid for verdict in taken.refused if verdict.go]
                if not waiting:
                    return Claimed(claims=tuple(claimed), refused=tuple(refused), at_limit=at_limit)
                _plan(ledger, job, waiting, pauses)
            except LedgerConflict as conflict:
                _give_way(ledger, job, conflict, pauses)


@contextmanager
def _given_back_on_error(ledger: Ledger, claimed: Sequence[Claim]) -> Iterator[None]:
    """The caller does not learn of these claims: let others have them at once."""
    try:
        yield
    except BaseException:
        if claimed:
            with suppress(OpenDataFlowError):
                abandon(ledger, claimed, "the claim of other chunks failed", begun=False)
        raise


def _look_at_files(
    ledger: Ledger, job: JobId, candidates: Sequence[Candidate]
) -> tuple[list[Candidate], list[Verdict]]:
    """The candidates with all files of their inputs in place, and the verdicts of the others, which are recorded."""
    placed: list[Candidate] = []
    misplaced: list[Verdict] = []
    roots = lookup.roots(ledger)
    for candidate in candidates:
        problems = look_at_files(candidate.manifests, roots)
        if problems:
            misplaced.append(Verdict(jobid=job, dataid=candidate.dataid, problems=problems, inputs=candidate.inputs))
        else:
            placed.append(candidate)
    if misplaced:
        with ledger.transaction() as transaction:
            claims.record(transaction, job, misplaced, block=True)
    return placed, misplaced


def _plan(ledger: Ledger, job: JobId, dataids: Sequence[DataId], pauses: Pauses) -> None:
    """Asking for chunks by name plans them. A chunk that is planned is evaluated again."""
    if pauses.are_over:
        raise _too_busy(ledger, job)
    with ledger.transaction() as transaction:
        registry.announce_chunks(transaction, job, dataids)
        claims.evaluate(transaction, job, dataids)


def _give_way(ledger: Ledger, job: JobId, conflict: LedgerConflict, pauses: Pauses) -> None:
    if not pauses.pause():
        raise _too_busy(ledger, job) from conflict
    if isinstance(conflict, StaleAnswers):
        settle(ledger, job)
        with suppress(LedgerConflict), ledger.transaction() as transaction:
            claims.evaluate(transaction, job, [DataId(dataid) for dataid in conflict.dataids])


def _too_busy(ledger: Ledger, job: JobId) -> LedgerConflict:
    refuse_to_wait(ledger, f"a claim of job {job}")
    return LedgerConflict(f"job {job}: other transactions keep changing its chunks; try again")


def _look_further(ledger: Ledger, job: JobId) -> None:
    """Nothing can run: is the Job registered at all, was it changed a moment ago, and has its `today` a new day?"""
    settle(ledger, job)
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        claims.open_days(transaction)
