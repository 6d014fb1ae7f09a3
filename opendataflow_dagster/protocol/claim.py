"""claim: one short transaction that locks, asks the five questions again, and takes what gets five yes.

The answers are stored with the claim. Files are looked at before the transaction ends: when one is missing, nothing
of it happened, the chunk is marked with its no, and the claim begins anew without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..ledger import claims
from ..ledger.claims import LostRace, Taken
from ..ledger.database import Ledger, Transaction
from ..model.claim import Claim
from ..model.errors import InvalidInput, LedgerConflict, NoGo
from ..model.ids import DataId, JobId, RunId, data_id, job_id
from ..model.verdict import Code, Verdict
from .gate import look_at_files, manifests_of, pins, require_job

# How often a claim begins anew. Each time at least one chunk was marked or taken by someone else.
_PATIENCE = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """What was asked for by name: the claims, and the verdicts of those that were refused."""

    claims: tuple[Claim, ...]
    refused: tuple[Verdict, ...]


_Take: TypeAlias = Callable[[Transaction], tuple[list[Taken], list[Verdict]]]


def claim_next(ledger: Ledger, jobid: str, count: int = 1, run_id: RunId | None = None) -> list[Claim]:
    """The next chunks of a Job, at most `count`; none when there is nothing to do now."""
    if count < 1:
        raise InvalidInput(f"cannot claim {count} chunks; ask for at least one")
    job = job_id(jobid)
    turned = False
    for _ in range(_PATIENCE):
        found = _claim(ledger, job, lambda transaction: claims.take_next(transaction, job, count, run_id))
        if found is None:
            continue
        if found.claims:
            return list(found.claims)
        if not found.refused:
            if turned or not _turn_the_day(ledger, job):
                return []
            turned = True
    raise LedgerConflict(f"job {job} has very much to refuse just now; try again")


def claim(ledger: Ledger, jobid: str, dataid: str, run_id: RunId | None = None) -> Claim:
    """This chunk, or NoGo with its five answers."""
    found = claim_many(ledger, jobid, [dataid], run_id)
    if found.refused:
        raise NoGo(found.refused[0])
    return found.claims[0]


def claim_many(ledger: Ledger, jobid: str, dataids: Iterable[str], run_id: RunId | None = None) -> Claimed:
    """These chunks; those that get a no come back with it."""
    job, wanted = job_id(jobid), list(dict.fromkeys(data_id(one) for one in dataids))
    with ledger.statement() as statement:
        require_job(statement, job)
    refused: dict[DataId, Verdict] = {}
    for _ in range(_PATIENCE):
        found = _claim(ledger, job, _named(job, [one for one in wanted if one not in refused], run_id))
        if found is None:
            continue
        refused |= {one.dataid: one for one in found.refused}
        if len(found.claims) + len(refused) == len(wanted):
            return Claimed(claims=found.claims, refused=tuple(refused.values()))
    raise LedgerConflict(f"the chunks {', '.join(wanted[:3])} of job {job} are wanted by many just now; try again")


def _named(job: JobId, names: list[DataId], run_id: RunId | None) -> _Take:
    return lambda transaction: claims.take_named(transaction, job, names, run_id)


def _claim(ledger: Ledger, job: JobId, take: _Take) -> Claimed | None:
    """One try. None: somebody was faster, nothing happened."""
    try:
        with ledger.transaction() as transaction:
            taken, refused = take(transaction)
            return Claimed(claims=_with_their_files(transaction, taken), refused=tuple(refused))
    except LostRace:
        return None
    except _Misplaced as misplaced:
        with ledger.transaction() as transaction:
            claims.record(transaction, job, misplaced.verdicts)
            claims.block(transaction, job, [one.dataid for one in misplaced.verdicts], Code.INVALID_PATH)
        return Claimed(claims=(), refused=tuple(misplaced.verdicts))


class _Misplaced(Exception):
    """Undoes the claim of chunks whose inputs are not in their place."""

    def __init__(self, verdicts: list[Verdict]) -> None:
        self.verdicts = verdicts


def _with_their_files(transaction: Transaction, taken: list[Taken]) -> tuple[Claim, ...]:
    if not any(one.file_count for one in taken):
        return tuple(one.claim for one in taken)
    manifests = manifests_of(transaction, (one.claim.verdict for one in taken))
    looked = [look_at_files(one.claim.verdict, manifests) for one in taken]
    if misplaced := [replace(one, claim_id=None) for one in looked if not one.go]:
        raise _Misplaced(misplaced)
    return tuple(replace(one.claim, manifests=pins(one.claim.verdict, manifests)) for one in taken)


def _turn_the_day(ledger: Ledger, job: JobId) -> bool:
    """Nothing to do: is the Job known at all, and has its `today` become another day?"""
    with ledger.transaction() as transaction:
        require_job(transaction, job)
        return bool(transaction.run("turn_the_day"))
