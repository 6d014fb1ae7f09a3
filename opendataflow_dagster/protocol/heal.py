"""heal: recover from crashes and expired leases. Any client may call it at any time, also concurrently.

Each part works in short transactions. A chunk that cannot be healed is reported and stops no other. One that another
transaction holds is left for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ..ledger import healing
from ..ledger.claims import open_days
from ..ledger.database import Ledger, Transaction
from ..ledger.healing import Act, OutRow
from ..ledger.retry import retry_conflicts
from ..ledger.settling import PATIENCE_SECONDS, PORTION, settle
from ..model.errors import LedgerConflict, OpenDataFlowError
from ..model.ids import ChunkKey, JobId
from ..model.status import Status

# Chunks that are changed in one transaction.
_AT_ONCE: Final = 100
#: More chunks of a DataSet than this are not rebuilt unasked: a month of days. A person decides about a year.
REBUILT_UNASKED: Final = 31

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True, slots=True)
class Healed:
    #: Their lease expired: they run again, or their retry budget is exhausted.
    resubmitted: tuple[ChunkKey, ...] = ()
    gave_up: tuple[ChunkKey, ...] = ()
    #: Failures that the Job's policy retries.
    retried: tuple[ChunkKey, ...] = ()
    #: Stale chunks of DataSets with `on_new_input="rebuild"`.
    rebuilt: tuple[ChunkKey, ...] = ()
    #: DataSets of which too many chunks are stale to be rebuilt unasked, with the next step.
    left_stale: tuple[str, ...] = ()
    #: Blocked chunks that were evaluated again.
    asked_again: int = 0
    #: IN rows of claims that are gone, and of foreign clients whose chunk is to run again.
    strays: int = 0
    #: Chunks that were missing in the runnable set, and those that the rebuild removed from it. More than zero:
    #: triggers were disabled, or it is a bug; report it.
    added: int = 0
    removed: int = 0
    #: Stale marks that the rebuild put or removed. More than zero means the same.
    corrected_marks: int = 0
    closed_runs: int = 0
    #: What could not be healed, and why. All the rest was.
    problems: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """What was healed, the important first."""
        return {
            "problems": len(self.problems),
            "failed": len(self.gave_up),
            "resubmitted": len(self.resubmitted),
            "retried": len(self.retried),
            "stale rebuilt": len(self.rebuilt),
            "stale marks corrected": self.corrected_marks,
            "runs closed": self.closed_runs,
            "stray rows": self.strays,
            "made runnable": self.added,
            "no longer runnable": self.removed,
            "re-evaluated": self.asked_again,
        }

    def __str__(self) -> str:
        return (
            f"expired leases: {len(self.resubmitted)} resubmitted, {len(self.gave_up)} failed; "
            f"retried: {len(self.retried)}; {', '.join((f'stale: {len(self.rebuilt)} rebuilt', *self.left_stale))}; "
            f"re-evaluated: {self.asked_again}; stray rows removed: {self.strays}; "
            f"runnable set: {self.added} added, {self.removed} removed; stale marks: {self.corrected_marks} corrected; "
            f"runs closed: {self.closed_runs}; problems: {'; '.join(self.problems) or 'none'}"
        )


def heal(ledger: Ledger, *, rebuild: bool = False, asked_by: str = "") -> Healed:
    """`rebuild` also compares every chunk with its derived rows.

    Its changes have reasons of their own; `asked_by` is the person who asked for it, and why.
    """
    work = _Heal(ledger=ledger, person=f", asked by {asked_by}" if asked_by else "")
    settle(ledger)
    expired = work.change("heal_expired", work.read(healing.expired_claims), actor="heal")
    retried = work.change("heal_retries", work.failures_to_retry(), actor="heal: retry policy")
    rebuilding = work.read(healing.rebuilding_datasets)
    few = [dataset.datasetid for dataset in rebuilding if dataset.stale <= REBUILT_UNASKED]
    stale = work.read(lambda read: healing.chunks_to_rebuild(read, few)) if few else []
    rebuilt = work.change("heal_stale", stale, actor="heal: on_new_input=rebuild")
    work.do("`today` cannot be opened", open_days)
    strays = work.do("stray rows cannot be removed", healing.remove_left_over) or 0
    asked_again = work.do("refused chunks cannot be evaluated", healing.ask_again) or 0
    closed_runs = work.do("runs cannot be closed", healing.close_runs) or 0
    added = work.do("lost wake-ups cannot be looked for", healing.patrol) or 0
    removed = corrected_marks = 0
    if rebuild:
        # The answers depend on what is stale.
        corrected_marks = work.rebuild_stale()
        strays += work.do("stray rows cannot be removed", healing.remove_strays) or 0
        missing, removed = work.rebuild()
        added += missing
    return Healed(
        resubmitted=tuple(sorted(key for key, status in expired if status is Status.RESUBMIT)),
        gave_up=tuple(sorted(key for key, status in expired if status is Status.FAILED)),
        retried=tuple(sorted({key for key, _ in retried})),
        rebuilt=tuple(sorted({key for key, _ in rebuilt})),
        left_stale=tuple(
            f"{dataset.stale} left in {dataset.datasetid} (more than {REBUILT_UNASKED}; "
            f"odf refresh {dataset.datasetid} --dry-run)"
            for dataset in rebuilding
            if dataset.stale > REBUILT_UNASKED
        ),
        asked_again=asked_again,
        strays=strays,
        added=added,
        removed=removed,
        corrected_marks=corrected_marks,
        closed_runs=closed_runs,
        problems=(*work.problems, *work.read(healing.broken_chunks)),
    )


@dataclass(frozen=True, kw_only=True)
class _Heal:
    ledger: Ledger
    person: str
    problems: list[str] = field(default_factory=list)

    def read(self, read: Callable[[Transaction], Found]) -> Found:
        with self.ledger.statement() as statement:
            return read(statement)

    def do(self, what: str, act: Callable[[Transaction], Found]) -> Found | None:
        """A step that is one transaction. Without locks that others hold, it is done the next time."""
        try:
            with self.ledger.transaction(actor=f"heal{self.person}") as transaction:
                return act(transaction)
        except LedgerConflict:
            return None
        except OpenDataFlowError as error:
            self._report(what, error)
            return None

    def change(self, act: Act, rows: Sequence[OutRow], *, actor: str) -> list[tuple[ChunkKey, Status]]:
        def change(portion: Sequence[OutRow]) -> list[tuple[ChunkKey, Status]]:
            with self.ledger.transaction(actor=f"{actor}{self.person}") as transaction:
                return healing.change(transaction, act, portion)

        portions = [rows[begin : begin + _AT_ONCE] for begin in range(0, len(rows), _AT_ONCE)]
        return [changed for portion in portions for changed in self._each(portion, change)]

    def failures_to_retry(self) -> list[OutRow]:
        jobids = self.read(healing.retrying_jobs)
        return self._each(jobids, lambda some: self.read(lambda read: healing.failures_to_retry(read, some)))

    def rebuild_stale(self) -> int:
        return sum(self._of_each_job(self._rebuild_stale_of))

    def rebuild(self) -> tuple[int, int]:
        rebuilt = self._of_each_job(self._rebuild_job)
        return sum(added for added, _ in rebuilt), sum(removed for _, removed in rebuilt)

    def _of_each_job(self, rebuild: Callable[[JobId], Found]) -> list[Found]:
        rebuilt = []
        for jobid in self.read(healing.jobs_with_chunks):
            try:
                rebuilt.append(rebuild(jobid))
            except OpenDataFlowError as error:
                if error.retryable and not isinstance(error, LedgerConflict):
                    raise
                self.problems.append(f"job {jobid} is not rebuilt: {error}")
        return rebuilt

    def _rebuild_stale_of(self, jobid: JobId) -> int:
        return sum(
            self._in_portions(lambda transaction, after: healing.rebuild_stale(transaction, jobid, after, PORTION))
        )

    def _rebuild_job(self, jobid: JobId) -> tuple[int, int]:
        def step(transaction: Transaction, after: str) -> tuple[str | None, tuple[int, int]]:
            if not after:
                healing.rebuild_turns(transaction, jobid)
            last, added, removed = healing.rebuild_after(transaction, jobid, after, PORTION)
            return last, (added, removed)

        portions = self._in_portions(step)
        return sum(added for added, _ in portions), sum(removed for _, removed in portions)

    def _in_portions(self, step: Callable[[Transaction, str], tuple[str | None, Found]]) -> list[Found]:
        """Each in a transaction of its own, until the step says that it was the last."""

        def act() -> tuple[str | None, Found]:
            with self.ledger.transaction(actor=f"heal{self.person}") as transaction:
                return step(transaction, after)

        after, found = "", []
        while True:
            last, more = retry_conflicts(act, PATIENCE_SECONDS)
            found.append(more)
            if last is None:
                return found
            after = last

    def _each(
        self,
        items: Sequence[Item],
        act: Callable[[Sequence[Item]], list[Found]],
        otherwise: Callable[[Item, OpenDataFlowError], list[Found]] | None = None,
    ) -> list[Found]:
        """All together; where that fails, one half after the other, so that only the item at fault is left out."""
        if not items:
            return []
        try:
            return act(items)
        except OpenDataFlowError as error:
            if error.retryable and not isinstance(error, LedgerConflict):
                raise
            if len(items) == 1:
                if otherwise is not None:
                    return otherwise(items[0], error)
                if not isinstance(error, LedgerConflict):
                    self._report(_name(items[0]), error)
                return []
        half = len(items) // 2
        return [*self._each(items[:half], act, otherwise), *self._each(items[half:], act, otherwise)]

    def _report(self, what: str, error: OpenDataFlowError) -> None:
        if error.retryable:
            raise error
        self.problems.append(f"{what}: {error}")


def _name(item: object) -> str:
    return "/".join(map(str, item)) if isinstance(item, tuple) else f"{item}"
