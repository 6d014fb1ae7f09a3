"""A crash between any two statements of any verb leaves the state before or after, nothing between.

The session of the verb is ended by the server before its k-th statement, for k = 1, 2, ... until the verb gets
through. To the ledger that is the same as a killed process, a pulled cable or a restarted server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from opendataflow_dagster.ledger.claims import Publication
from opendataflow_dagster.ledger.database import Ledger, Transaction
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import ClaimLost, LedgerUnavailable
from opendataflow_dagster.model.ids import ClaimId, DatasetId
from opendataflow_dagster.model.job import ALL, Job, ListedChunks, Policy
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.protocol.claim import claim, claim_many, claim_next
from opendataflow_dagster.protocol.gate import gate
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, skip, unhold
from opendataflow_dagster.protocol.job_run import begin_run
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import plan, register
from opendataflow_dagster.protocol.release import abandon, abandon_run, fail
from opendataflow_dagster.protocol.renew import renew
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.effort import sampled
from tests.factories import job, key
from tests.invariants import Kept, Snapshot, assert_invariants, snapshot


class CrashingTransaction(Transaction):
    def __init__(self, connection: Any, before_a_statement: Callable[[Any], None]) -> None:
        super().__init__(connection)
        self._before_a_statement = before_a_statement

    def _execute(self, cursor: Any, name: str, parameters: dict[str, object]) -> Any:
        self._before_a_statement(self._connection)
        return super()._execute(cursor, name, parameters)


class CrashingLedger(Ledger):
    """Counts the boundaries between statements; before the one that was chosen, the session dies."""

    def __init__(self, url: str, *, die_at: int = 0) -> None:
        super().__init__(url, actor="test", patience=timedelta(seconds=30))
        self.boundaries = 0
        #: The state after each transaction that was committed.
        self.states: list[Snapshot] = []
        self._die_at = die_at
        self._killer = psycopg.connect(url, autocommit=True)

    def close(self) -> None:
        super().close()
        self._killer.close()

    @contextmanager
    def transaction(
        self, *, actor: str | None = None, reason: str | None = None, any_schema: bool = False
    ) -> Iterator[Transaction]:
        with super().transaction(actor=actor, reason=reason, any_schema=any_schema) as transaction:
            yield CrashingTransaction(transaction._connection, self._boundary)
            self._boundary(transaction._connection)  # before the commit
        self.states.append(snapshot(self._killer))

    @contextmanager
    def statement(self) -> Iterator[Transaction]:
        with super().statement() as statement:
            yield CrashingTransaction(statement._connection, self._boundary)
        self.states.append(snapshot(self._killer))

    def _boundary(self, connection: psycopg.Connection[Any]) -> None:
        self.boundaries += 1
        if self.boundaries == self._die_at:
            self._killer.execute("select pg_terminate_backend(%s, 10000)", (connection.info.backend_pid,))


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A ledger with a chunk in every state that a verb may meet, made by the verbs themselves."""

    root: Path
    datasets: list[Dataset]
    jobs: dict[str, Job]
    held: Claim
    second: Claim
    run: Claim


def prepare(url: str, root: Path) -> Stage:
    with Ledger(url, actor="test") as ledger, psycopg.connect(url, autocommit=True) as psql:
        jobs = [
            job("load: -> raw", Policy(max_attempts=5)),
            job("clean: raw -> tidy, extra", Policy(retry_on="disk", cascade=True)),
            job("daily: raw -> day", raw=ListedChunks(lambda dataid: [dataid, "1"])),
            job("report: raw -> paper", raw=ALL),
        ]
        names = {one.datasetid for each in jobs for one in each.inputs} | {one for each in jobs for one in each.outputs}
        datasets = [Dataset(datasetid=one, location=str(root / one)) for one in sorted(names)]
        register(ledger, datasets, jobs)
        load, clean, daily, report = jobs
        plan(ledger, load, ["1", "2", "3", "4", "5", "6"])
        for dataid in ("1", "2", "3"):
            one = claim(ledger, "load", dataid)
            publish(ledger, one, made(one, root))
        plan(ledger, clean, ["1", "2"])
        plan(ledger, daily, ["1", "2"])
        plan(ledger, report, ["1"])
        held, second = claim(ledger, "clean", "1"), claim(ledger, "daily", "2")
        old = claim(ledger, "clean", "3")
        publish(ledger, old, made(old, root))
        resubmit(ledger, [key("raw/3")], by="ada")
        again = claim(ledger, "load", "3")
        publish(ledger, again, made(again, root))  # clean/3 is out of date now
        run = claim(ledger, "load", "4", begin_run(ledger, "load"))
        expired = claim(ledger, "load", "5")
        psql.execute(
            "update dataflow.datastatus set lease_until = now() where claim_id = %s and locktype = 'OUT'",
            (expired.claim_id,),
        )
        hold(ledger, [key("raw/6")], by="ada")
        fail(ledger, claim(ledger, "clean", "2"), "the disk is full")
    return Stage(root=root, datasets=datasets, jobs={one.jobid: one for one in jobs}, held=held, second=second, run=run)


def made(claim: Claim, root: Path) -> dict[DatasetId, NewManifest]:
    """Really written, so that the claim of a consumer looks at files, too."""
    found: dict[DatasetId, NewManifest] = {}
    for output in claim.outputs:
        folder = root / output / f"claim-{claim.claim_id}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part-0").write_text(f"claim {claim.claim_id}")
        size = (folder / "part-0").stat().st_size
        found[output] = NewManifest(location=str(folder), files=(File(path="part-0", size=size),), row_count=1)
    return found


Verb = Callable[[Ledger, Stage], object]


def _register(ledger: Ledger, stage: Stage) -> object:
    # A DataSet and a Job that are new, and a Job that has another input and another policy.
    datasets = [*stage.datasets, Dataset(datasetid=DatasetId("codes"))]
    jobs = [job("load: -> raw", Policy(max_attempts=2)), job("look: -> codes"), job("report: raw, codes -> paper")]
    return register(ledger, datasets, jobs)


def _claim_without_its_files(ledger: Ledger, stage: Stage) -> object:
    """The claim is undone, and the no is stored."""
    (stage.root / "raw").rename(stage.root / "away")
    try:
        return claim_many(ledger, "clean", ["3", "2", "1"]), claim_next(ledger, "daily")
    finally:
        (stage.root / "away").rename(stage.root / "raw")


def _publish_as_a_stranger(ledger: Ledger, stage: Stage) -> object:
    stranger = replace(stage.held, claim_id=ClaimId(stage.held.claim_id + 1000))
    with pytest.raises(ClaimLost):
        publish(ledger, stranger, made(stranger, stage.root))
    return None


VERBS: Final[dict[str, Verb]] = {
    "register": _register,
    "plan": lambda ledger, stage: plan(ledger, stage.jobs["load"], ["7", "8"]),
    "plan listed": lambda ledger, stage: plan(ledger, stage.jobs["daily"], ["2", "3"]),
    "gate": lambda ledger, stage: gate(ledger, "clean", ["1", "2", "3", "4"]),
    "claim next": lambda ledger, stage: claim_next(ledger, "load", 3),
    "claim next with files": lambda ledger, stage: claim_next(ledger, "daily", 3),
    "claim by name": lambda ledger, stage: claim_many(ledger, "load", ["7", "8", "1"]),
    "claim by name with files": lambda ledger, stage: claim_many(ledger, "daily", ["1", "2"]),
    "claim without its files": _claim_without_its_files,
    "renew": lambda ledger, stage: renew(ledger, [stage.held, stage.second]),
    "publish": lambda ledger, stage: publish(ledger, stage.held, made(stage.held, stage.root)),
    "publish what was lost": _publish_as_a_stranger,
    "fail": lambda ledger, stage: fail(ledger, stage.held, "disk full"),
    "abandon": lambda ledger, stage: abandon(ledger, [stage.held, stage.second], "cancelled"),
    "abandon run": lambda ledger, stage: abandon_run(ledger, stage.run.run_id, "gone") if stage.run.run_id else None,
    "hold": lambda ledger, stage: hold(ledger, [key("tidy/1"), key("raw/2"), key("raw/9")], by="ada", reason="audit"),
    "unhold": lambda ledger, stage: unhold(ledger, [key("raw/6")], by="ada"),
    "skip": lambda ledger, stage: skip(ledger, [key("raw/2"), key("raw/9")], by="ada"),
    "resubmit": lambda ledger, stage: resubmit(ledger, [key("raw/1")], by="ada", with_downstream=True),
    "heal": lambda ledger, stage: heal(ledger, rebuild=True),
}


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_crash_between_two_statements_leaves_the_state_before_or_after(url: str, tmp_path: Path, name: str) -> None:
    verb, stage = VERBS[name], prepare(url, tmp_path)
    with psycopg.connect(url, autocommit=True) as psql, Ledger(url, actor="test") as healthy:
        before, kept = snapshot(psql), Kept.of(psql)
        with closing(CrashingLedger(url)) as ledger:
            verb(ledger, stage)
            states, boundaries = [before, *ledger.states], ledger.boundaries
        assert boundaries > 0
        assert_invariants(psql)
        for place in sampled(range(1, boundaries + 1), fast=3):
            kept.put_back()
            assert snapshot(psql) == before
            with closing(CrashingLedger(url, die_at=place)) as ledger:
                with pytest.raises(LedgerUnavailable):
                    verb(ledger, stage)
                done = len(ledger.states)
            assert snapshot(psql) == states[done], f"after a crash before statement {place} of {name}"
            assert_invariants(psql)
            verb(healthy, stage)
            assert_invariants(psql)


#: Said again, they do nothing new. A claim is not among them: nobody knows that it was granted until its lease is over.
REPEATABLE: Final = sorted(name for name in VERBS if not name.startswith("claim"))
#: Said again, they find that the claim has ended.
ENDING: Final = frozenset({"fail", "abandon"})


@pytest.mark.parametrize("name", REPEATABLE)
def test_a_verb_whose_answer_was_lost_is_said_again_and_does_nothing_twice(url: str, tmp_path: Path, name: str) -> None:
    verb, stage = VERBS[name], prepare(url, tmp_path)
    with Ledger(url, actor="test") as ledger, psycopg.connect(url, autocommit=True) as psql:
        first = verb(ledger, stage)
        after = snapshot(psql)
        if name in ENDING:
            with pytest.raises(ClaimLost):
                verb(ledger, stage)
        else:
            second = verb(ledger, stage)
            if isinstance(first, Publication) and isinstance(second, Publication):
                assert (second.manifest_id, second.version) == (first.manifest_id, first.version)
        assert snapshot(psql) == after
        assert_invariants(psql)
