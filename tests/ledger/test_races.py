"""Concurrency: real processes that start at a barrier, and pairs of transactions forced into the worst order."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
import pytest
from psycopg.rows import dict_row

from opendataflow_dagster.ledger import chunks, healing, registry
from opendataflow_dagster.ledger import claims as ledger_claims
from opendataflow_dagster.ledger import operations as ledger_operations
from opendataflow_dagster.ledger.database import Connection, Ledger, Transaction
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import InvalidDefinition, LedgerConflict, NoGo, OpenDataFlowError
from opendataflow_dagster.model.ids import DataId, DatasetId, JobId
from opendataflow_dagster.model.job import ALL, EQUAL, Job, ListedChunks, Policy
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.model.status import Status
from opendataflow_dagster.model.verdict import Code
from opendataflow_dagster.protocol.announce import announce
from opendataflow_dagster.protocol.claim import claim, claim_many, claim_next
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, unhold
from opendataflow_dagster.protocol.publish import StagedClaim, publish, publish_many
from opendataflow_dagster.protocol.register import plan
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.effort import PATIENCE_SECONDS, sampled, scaled
from tests.factories import Flow, job, key
from tests.invariants import Kept, assert_invariants

PROCESSES: Final = multiprocessing.get_context("spawn")
PATIENCE: Final = float(PATIENCE_SECONDS)
RESUBMIT_TYPED: Final = (
    "update dataflow.datastatus set status = 'RESUBMIT' where datasetid = %s and dataid = %s and locktype = 'OUT'"
)

T = TypeVar("T")
#: The work of a process; called with the barrier and its own arguments.
Act: TypeAlias = Callable[..., T]


# Processes that start together.


def at_once(act: Act[T], *each: tuple[object, ...]) -> list[T]:
    """Run a process for each tuple of arguments; return their results in that order."""
    barrier, said = PROCESSES.Barrier(len(each)), PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_say, args=(said, place, act, barrier, given)) for place, given in enumerate(each)
    ]
    for process in processes:
        process.start()
    try:
        answers = dict(said.get(timeout=PATIENCE) for _ in processes)
    finally:
        for process in processes:
            process.join(timeout=5)
            process.kill()
    for answer in answers.values():
        assert not isinstance(answer, _Failed), answer.text
    return [answers[place] for place in range(len(each))]


@dataclass(frozen=True)
class _Failed:
    text: str


def _say(said: Any, place: int, act: Act[Any], barrier: Barrier, given: tuple[object, ...]) -> None:
    try:
        said.put((place, act(barrier, *given)))
    except BaseException:
        barrier.abort()
        said.put((place, _Failed(traceback.format_exc())))


def deadlocks(flow: Flow) -> int:
    """The count since the database was created. A session reports its own deadlocks when it ends."""
    _wait_for_the_others_to_end(flow)
    return _count(flow, "select deadlocks from pg_stat_database where datname = current_database()")


def _wait_for_the_others_to_end(flow: Flow) -> None:
    """All sessions except the two of the test itself: psql and an idle one of the ledger."""
    sessions = "select count(*) from pg_stat_activity where datname = current_database()"
    _wait_until(lambda: _count(flow, sessions) <= 2)


def _count(flow: Flow, query: str, *values: object) -> int:
    row = flow.psql.execute(query.encode(), values).fetchone()
    assert row is not None
    return int(row[0])


def _wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.005)


def of_claim(claim: Claim, root: str) -> dict[DatasetId, NewManifest]:
    return {
        output: NewManifest(location=f"{root}/{output}/claim-{claim.claim_id}", row_count=1) for output in claim.outputs
    }


def announce_many(flow: Flow, datasetid: str, count: int) -> None:
    flow.type(
        "insert into dataflow.datastatus "
        "select %s, 'someone', n::text, 'OUT', 'READY', now() from generate_series(1, %s) n",
        datasetid,
        count,
    )


def external(name: str) -> Dataset:
    return Dataset(datasetid=DatasetId(name))


# Claims.


def _claim_until_nothing_is_left(barrier: Barrier, url: str, count: int) -> list[tuple[str, int]]:
    with Ledger(url, connections=1) as ledger:
        found: list[tuple[str, int]] = []
        barrier.wait()
        while taken := claim_next(ledger, "clean", count):
            found += [(claim.dataid, claim.claim_id) for claim in taken]
        return found


def test_many_processes_claim_each_chunk_exactly_once(flow: Flow) -> None:
    count, processes = scaled(20_000, fast=2_000), scaled(16, fast=4)
    flow.register("clean: raw -> tidy", raw=external("raw"))
    announce_many(flow, "raw", count)
    before = deadlocks(flow)
    lists = at_once(_claim_until_nothing_is_left, *((flow.url, (1, 7, 100)[n % 3]) for n in range(processes)))
    dataids = [dataid for found in lists for dataid, _ in found]
    claim_ids = [claim_id for found in lists for _, claim_id in found]
    assert len(dataids) == len(set(dataids)) == len(set(claim_ids)) == count
    recorded = flow.psql.execute(
        "select dataid, claim_id from dataflow.chunk_event where datasetid = 'tidy' and new_status = 'RUNNING'"
    ).fetchall()
    assert sorted(recorded) == sorted(zip(dataids, claim_ids, strict=True))
    assert deadlocks(flow) == before
    flow.psql.execute("analyze")  # the invariants query all chunks at once
    assert_invariants(flow.psql)


def _claim_by_name(barrier: Barrier, url: str, names: Sequence[str]) -> list[str]:
    with Ledger(url, connections=1) as ledger:
        said: list[str] = []
        for name in names:
            barrier.wait()
            try:
                claim(ledger, "load", name)
                said.append("go")
            except NoGo as refused:
                said.append(refused.verdict.code or "")
        return said


def test_chunks_that_another_transaction_holds_are_passed_over(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", raw=external("raw"))
    announce_many(flow, "raw", 10)
    with session(flow) as other:
        other.execute("select from dataflow.runnable where jobid = 'clean' and dataid <> '10' for update")
        assert [claim.dataid for claim in claim_next(flow.ledger, "clean")] == ["10"]
        assert claim_next(flow.ledger, "clean", 3) == []
        other.rollback()
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 3)] == ["1", "2", "3"]


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("outputs", ["raw", "left, right"])
def test_of_two_concurrent_claims_by_name_one_wins_and_the_other_is_locked(
    flow: Flow, planned: bool, outputs: str
) -> None:
    (load,) = flow.register(f"load: -> {outputs}")
    names = [str(n) for n in range(40)]
    if planned:
        flow.plan(load, names)
    before = deadlocks(flow)
    said = at_once(_claim_by_name, (flow.url, names), (flow.url, names))
    assert [sorted(both) for both in zip(*said, strict=True)] == [[Code.LOCKED, "go"]] * len(names)
    assert deadlocks(flow) == before
    assert_invariants(flow.psql)


def _claim_many_by_name(barrier: Barrier, url: str, rounds: Sequence[Sequence[str]]) -> list[set[str]]:
    with Ledger(url, connections=1) as ledger:
        said: list[set[str]] = []
        for names in rounds:
            barrier.wait()
            said.append({str(claim.dataid) for claim in claim_many(ledger, "load", names).claims})
        return said


def test_claims_by_name_in_opposite_orders_do_not_deadlock(flow: Flow) -> None:
    flow.register("load: -> raw")
    rounds = [[f"{turn}-{n}" for n in range(12)] for turn in range(15)]
    before = deadlocks(flow)
    first, second = at_once(_claim_many_by_name, (flow.url, rounds), (flow.url, [names[::-1] for names in rounds]))
    for names, mine, theirs in zip(rounds, first, second, strict=True):
        assert mine | theirs == set(names)
        assert not mine & theirs
    assert deadlocks(flow) == before
    assert_invariants(flow.psql)


# Crashes.


def _claim_and_publish(barrier: Barrier, url: str, root: str, steps: Any) -> int:
    """Reports each step, so that the test can kill it between two."""
    made = 0
    with Ledger(url, connections=1) as ledger:
        barrier.wait()
        while taken := claim_next(ledger, "clean", 20):
            for claim in taken:
                if steps is not None:
                    steps.send(made)
                publish(ledger, claim, of_claim(claim, root))
                made += 1
    return made


def test_a_claimer_killed_with_sigkill_loses_nothing(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", raw=external("raw"))
    announce_many(flow, "raw", 300)
    barrier, said = PROCESSES.Barrier(4), PROCESSES.Queue()
    steps, of_victim = PROCESSES.Pipe(duplex=False)
    for place in range(3):
        PROCESSES.Process(
            target=_say, args=(said, place, _claim_and_publish, barrier, (flow.url, str(flow.root), None)), daemon=True
        ).start()
    victim = PROCESSES.Process(
        target=_claim_and_publish, args=(barrier, flow.url, str(flow.root), of_victim), daemon=True
    )
    victim.start()
    while steps.recv() < 7:
        pass
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    assert victim.exitcode == -signal.SIGKILL
    for _ in range(3):
        _, made = said.get(timeout=PATIENCE)
        assert isinstance(made, int), made
    _wait_for_the_others_to_end(flow)

    lost = _count(flow, "select count(*) from dataflow.datastatus where datasetid = 'tidy' and status = 'RUNNING'")
    assert 1 <= lost <= 20
    assert_invariants(flow.psql)
    flow.type("update dataflow.datastatus set lease_until = now() where claim_id is not null and locktype = 'OUT'")
    assert len(heal(flow.ledger).resubmitted) == lost
    again = claim_next(flow.ledger, "clean", 100)
    assert len(again) == lost
    assert {claim.attempt for claim in again} == {2}
    for reclaimed in again:
        publish(flow.ledger, reclaimed, of_claim(reclaimed, str(flow.root)))

    statuses = flow.psql.execute("select status, count(*) from dataflow.datastatus where datasetid = 'tidy' group by 1")
    assert statuses.fetchall() == [("READY", 300)]
    versions = flow.psql.execute("select version, count(*) from dataflow.data_manifest group by 1")
    assert versions.fetchall() == [(1, 300)]
    assert flow.in_rows() == []
    assert_invariants(flow.psql)


# Wake-ups.


def _publish_in_turn(barrier: Barrier, url: str, root: str, claims: Sequence[Claim]) -> None:
    with Ledger(url, connections=1) as ledger:
        for claim in claims:
            barrier.wait()
            publish(ledger, claim, of_claim(claim, root))


def test_two_inputs_published_concurrently_wake_their_consumer(flow: Flow) -> None:
    flow.register("load: -> raw", "look: -> codes", "join: raw, codes -> joined")
    names = [str(n) for n in range(1, 101)]
    claims = [claim_many(flow.ledger, jobid, names).claims for jobid in ("load", "look")]
    at_once(_publish_in_turn, *((flow.url, str(flow.root), each) for each in claims))
    assert flow.runnable() == [("join", name) for name in names]
    assert_invariants(flow.psql)


MAPPINGS: Final = {"equal": EQUAL, "listed": ListedChunks(lambda dataid: [dataid]), "all": ALL}


def consumer(mapping: str) -> Job:
    """Built in each process: the function in a mapping cannot be pickled."""
    return job("clean: raw -> tidy", raw=MAPPINGS[mapping])


RAW_IS_READY: Final = "select from dataflow.datastatus where datasetid = 'raw' and status = 'READY'"


def _publish_in_rounds(barrier: Barrier, url: str, root: str, rounds: int) -> list[int]:
    with Ledger(url, connections=1) as ledger:
        for _ in range(rounds):
            taken = claim(ledger, "load", "1")
            barrier.wait()
            publish(ledger, taken, of_claim(taken, root))
            barrier.wait()  # the consumer has looked
            resubmit(ledger, [key("raw/1")], by="ada")
    return []


def _ask_for_the_consumer_in_rounds(barrier: Barrier, url: str, mapping: str, act: str, rounds: int) -> list[int]:
    asleep: list[int] = []
    with Ledger(url, connections=1) as ledger, psycopg.connect(url, autocommit=True) as psql:
        for turn in range(rounds):
            if act == "resubmit":
                psql.execute("update dataflow.datastatus set status = 'FAILED' where datasetid = 'tidy'")
            else:
                psql.execute("delete from dataflow.datastatus where datasetid = 'tidy'")
                psql.execute("delete from dataflow.chunk_input")
            barrier.wait()
            if act == "resubmit":
                psql.execute(RESUBMIT_TYPED, ("tidy", "1"))
            else:
                plan(ledger, consumer(mapping), ["1"])
            _wait_until(lambda: psql.execute(RAW_IS_READY).rowcount == 1)
            if psql.execute("select from dataflow.runnable where jobid = 'clean' and dataid = '1'").rowcount == 0:
                asleep.append(turn)
            barrier.wait()
    return asleep


@pytest.mark.slow
@pytest.mark.parametrize("mapping", sorted(MAPPINGS))
@pytest.mark.parametrize("act", ["resubmit", "plan"])
def test_an_input_published_while_its_consumer_is_requested_wakes_it(flow: Flow, mapping: str, act: str) -> None:
    load, clean = flow.register("load: -> raw", consumer(mapping))
    flow.plan(load, ["1"])
    flow.plan(clean, ["1"])
    _, asleep = at_once(
        _play_a_part,
        (_publish_in_rounds, flow.url, str(flow.root), 40),
        (_ask_for_the_consumer_in_rounds, flow.url, mapping, act, 40),
    )
    assert asleep == []
    assert_invariants(flow.psql)


# Publishers, operators and healers.


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many calls ended in a conflict: a deadlock, or another one."""

    deadlocks: int
    others: int


def _publish_batches(barrier: Barrier, url: str, root: str, seed: int) -> Tally:
    chance, gave_way = random.Random(seed), Counter[str]()  # noqa: S311 - no secret, the same in each run
    with Ledger(url, connections=1) as ledger:
        barrier.wait()
        for _ in range(scaled(60, fast=15)):
            with _counted(gave_way):
                taken = claim_next(ledger, chance.choice(("load", "clean")), 12)
                publish_many(ledger, [StagedClaim(claim=claim, manifests=of_claim(claim, root)) for claim in taken])
    return _tally(gave_way)


def _operate(barrier: Barrier, url: str, names: Sequence[str], seed: int) -> Tally:
    """Update many rows in one transaction in random order; hold and unhold chunks."""
    chance, gave_way = random.Random(seed), Counter[str]()  # noqa: S311 - no secret, the same in each run
    with Ledger(url, connections=1) as ledger, psycopg.connect(url, autocommit=True) as psql:
        barrier.wait()
        for _ in range(scaled(40, fast=10)):
            some = [(chance.choice(("raw", "tidy", "extra")), name) for name in chance.sample(names, 8)]
            keys = [key("/".join(chunk)) for chunk in some]
            with _counted(gave_way), psql.transaction():
                for chunk in some:
                    psql.execute(RESUBMIT_TYPED, chunk)
            with _counted(gave_way):
                hold(ledger, keys[:3], by="ada")
            let_go = False
            while not let_go:
                with _counted(gave_way):
                    unhold(ledger, keys[:3], by="ada")
                    let_go = True
    return _tally(gave_way)


def _heal_on_and_on(barrier: Barrier, url: str) -> Tally:
    gave_way = Counter[str]()
    with Ledger(url, connections=1) as ledger:
        barrier.wait()
        for turn in range(scaled(20, fast=5)):
            with _counted(gave_way):
                heal(ledger, rebuild=turn % 4 == 3)
    return _tally(gave_way)


@contextlib.contextmanager
def _counted(gave_way: Counter[str]) -> Iterator[None]:
    """A verb may raise LedgerConflict and typed SQL may deadlock; anything else is an error."""
    try:
        yield
    except (LedgerConflict, psycopg.errors.DeadlockDetected) as error:
        gave_way["deadlock" if "deadlock" in str(error) else "other"] += 1


def _tally(gave_way: Counter[str]) -> Tally:
    return Tally(deadlocks=gave_way["deadlock"], others=gave_way["other"])


def _play_a_part(barrier: Barrier, act: Act[T], *given: object) -> T:
    return act(barrier, *given)


def test_concurrent_publishers_operators_and_healers_lose_nothing(flow: Flow) -> None:
    load, clean = flow.register("load: -> raw", "clean: raw -> tidy, extra")
    names = [str(n) for n in range(60)]
    flow.plan(load, names)
    flow.plan(clean, names)
    before = deadlocks(flow)
    tallies: list[Tally] = at_once(
        _play_a_part,
        *((_publish_batches, flow.url, str(flow.root), seed) for seed in range(3)),
        *((_operate, flow.url, names, seed) for seed in range(2)),
        (_heal_on_and_on, flow.url),
    )
    print("gave way:", tallies)  # noqa: T201 - pytest shows it when the test fails, and with -s
    # Every deadlock that Postgres counted was reported to a caller as retryable.
    assert deadlocks(flow) - before == sum(tally.deadlocks for tally in tallies)
    assert_invariants(flow.psql)

    # Nothing is lost: the normal flow brings every chunk to READY.
    flow.type("update dataflow.datastatus set lease_until = now() where claim_id is not null and locktype = 'OUT'")
    heal(flow.ledger)
    flow.type("update dataflow.datastatus set status = 'RESUBMIT' where status = 'FAILED'")
    for jobid in ("load", "clean"):
        while taken := claim_next(flow.ledger, jobid, 100):
            publish_many(
                flow.ledger, [StagedClaim(claim=claim, manifests=of_claim(claim, str(flow.root))) for claim in taken]
            )
    statuses = flow.psql.execute("select status, count(*) from dataflow.datastatus group by 1").fetchall()
    assert statuses == [("READY", 180)]
    assert_invariants(flow.psql)


# Two transactions, the second of which starts before the first commits.


Operation: TypeAlias = Callable[[Transaction], object]


def session(flow: Flow) -> Connection:
    return Connection.connect(flow.url, row_factory=dict_row)


def waiting_for(flow: Flow, connection: Connection) -> int:
    blocked = "select count(*) from pg_stat_activity where %s = any (pg_blocking_pids(pid))"
    return _count(flow, blocked, connection.info.backend_pid)


def between(flow: Flow, first: Operation, second: Callable[[], T], mine: Connection | None = None) -> T:
    with contextlib.nullcontext(mine) if mine else session(flow) as connection, ThreadPoolExecutor(1) as pool:
        first(Transaction(connection))
        running = pool.submit(second)
        _wait_until(lambda: running.done() or waiting_for(flow, connection) > 0)
        connection.commit()
        return running.result(PATIENCE)


def alone(flow: Flow, operation: Operation) -> Callable[[], object]:
    """The operation in its own transaction."""

    def committed() -> object:
        with flow.ledger.transaction() as transaction:
            return operation(transaction)

    return committed


def typed(statement: str, *values: object) -> Operation:
    return lambda transaction: transaction._connection.execute(statement.encode(), values)


def typed_resubmit(chunk: str) -> Operation:
    return typed(RESUBMIT_TYPED, *chunk.split("/"))


def publishes(flow: Flow, claim: Claim, content: str | None = None) -> Operation:
    made = {output: flow.manifest(claim, output, content) for output in claim.outputs}
    return lambda transaction: ledger_claims.publish(transaction, [(claim, made)])


def takes(jobid: str, dataid: str) -> Operation:
    def take(transaction: Transaction) -> object:
        job, named = JobId(jobid), [DataId(dataid)]
        candidates = ledger_claims.named_candidates(transaction, job, named)
        return ledger_claims.claim(transaction, job, candidates, count=1, run_id=None, named=named)

    return take


def test_renewing_a_lease_during_its_publish_does_not_block_the_publish(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    mine = claim(flow.ledger, "load", "1")
    between(flow, lambda transaction: ledger_claims.renew(transaction, [mine]), lambda: flow.publish(mine))
    assert flow.status("raw/1") == "READY"
    assert flow.chunk("raw/1").version == 1
    assert_invariants(flow.psql)


@pytest.mark.parametrize("output", ["left", "right"])
def test_renewing_a_lease_while_it_is_revoked_does_not_save_it(flow: Flow, output: str) -> None:
    (load,) = flow.register("load: -> left, right")
    flow.plan(load, ["1"])
    mine = claim(flow.ledger, "load", "1")
    between(
        flow,
        lambda transaction: ledger_claims.renew(transaction, [mine]),
        alone(flow, typed_resubmit(f"{output}/1")),
    )
    assert [flow.status("left/1"), flow.status("right/1")] == ["RESUBMIT", "RESUBMIT"]
    assert_invariants(flow.psql)


def test_a_chunk_held_while_its_input_is_republished_is_not_runnable(flow: Flow) -> None:
    load, clean = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1"])
    flow.plan(clean, ["1"])
    flow.produce("load", "1")
    flow.type(RESUBMIT_TYPED, "raw", "1")
    again = claim(flow.ledger, "load", "1")
    between(flow, publishes(flow, again), lambda: hold(flow.ledger, [key("tidy/1")], by="ada"))
    assert flow.runnable() == []
    assert_invariants(flow.psql)


@pytest.mark.parametrize("mapping", sorted(MAPPINGS))
@pytest.mark.parametrize("first", ["plan", "publish"])
def test_a_consumer_planned_while_its_input_is_published_is_runnable(flow: Flow, mapping: str, first: str) -> None:
    load, clean = flow.register("load: -> raw", consumer(mapping))
    flow.plan(load, ["1"])
    publishing = publishes(flow, claim(flow.ledger, "load", "1"))

    def planning(transaction: Transaction) -> object:
        return registry.plan_chunks(transaction, clean, [DataId("1")])

    before, after = (planning, publishing) if first == "plan" else (publishing, planning)
    between(flow, before, alone(flow, after))
    assert flow.runnable() == [("clean", "1")]
    assert_invariants(flow.psql)


@pytest.mark.parametrize("mapping", sorted(MAPPINGS))
@pytest.mark.parametrize("first", ["resubmit", "publish"])
def test_a_consumer_resubmitted_while_its_input_is_published_is_runnable(flow: Flow, mapping: str, first: str) -> None:
    load, clean = flow.register("load: -> raw", consumer(mapping))
    flow.plan(load, ["1"])
    flow.plan(clean, ["1"])
    flow.type("update dataflow.datastatus set status = 'FAILED' where datasetid = 'tidy'")
    publishing, asking = publishes(flow, claim(flow.ledger, "load", "1")), typed_resubmit("tidy/1")
    before, after = (asking, publishing) if first == "resubmit" else (publishing, asking)
    between(flow, before, alone(flow, after))
    assert flow.runnable() == [("clean", "1")]
    assert_invariants(flow.psql)


@pytest.mark.parametrize("first", ["lost", "published"])
def test_an_input_lost_while_another_is_published_does_not_wake_the_consumer(flow: Flow, first: str) -> None:
    flow.register("load: -> raw", "look: -> codes", "join: raw, codes -> joined")
    flow.produce("load", "1")
    publishing, losing = publishes(flow, claim(flow.ledger, "look", "1")), typed_resubmit("raw/1")
    before, after = (losing, publishing) if first == "lost" else (publishing, losing)
    between(flow, before, alone(flow, after))
    assert flow.runnable() == [("load", "1")]
    assert_invariants(flow.psql)


@pytest.mark.parametrize("first", ["input", "output"])
def test_a_chunk_published_while_its_input_is_republished_is_stale(flow: Flow, first: str) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", "total: tidy -> sums")
    flow.produce("load", "1")
    made_from_the_old_one = publishes(flow, claim(flow.ledger, "clean", "1"))
    flow.type(RESUBMIT_TYPED, "raw", "1")
    republishing = publishes(flow, claim(flow.ledger, "load", "1"))
    before, after = (republishing, made_from_the_old_one) if first == "input" else (made_from_the_old_one, republishing)
    between(flow, before, alone(flow, after))
    assert_invariants(flow.psql)
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, "total", "1")
    assert refused.value.verdict.code is Code.WRONG_DATA


def test_a_chunk_published_while_its_input_is_announced_again_is_stale(flow: Flow) -> None:
    """The announcement has waited for the readers and then for another transaction when this one starts."""
    flow.register("clean: raw -> tidy", "total: tidy -> sums")

    def announces(version: int) -> object:
        new = {
            DataId(dataid): NewManifest(
                location=f"{flow.root}/raw/{dataid}-{version}", content_digest=f"{dataid} {version}"
            )
            for dataid in ("1", "2")
        }
        return announce(flow.ledger, "raw", list(new), by="ada", manifests=new)

    announces(1)
    with session(flow) as looking, session(flow) as publishing, ThreadPoolExecutor(1) as pool:
        looking.execute("select from dataflow.runnable where jobid = 'clean' and dataid = '1' for update")
        announcing = pool.submit(announces, 2)
        _wait_until(lambda: waiting_for(flow, looking) > 0)
        publishes(flow, claim(flow.ledger, "clean", "2"))(Transaction(publishing))
        looking.commit()
        _wait_until(lambda: announcing.done() or waiting_for(flow, publishing) > 0)
        publishing.commit()
        announcing.result(PATIENCE)
    assert_invariants(flow.psql)
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, "total", "2")
    assert refused.value.verdict.code is Code.WRONG_DATA


def test_of_two_concurrent_rollbacks_one_is_a_retryable_conflict(flow: Flow) -> None:
    flow.register("load: -> raw")
    flow.produce("load", "1")
    with flow.ledger.statement() as statement:
        first = chunks.version(statement, key("raw/1"), 1)
    assert first is not None

    def rolls_back(transaction: Transaction) -> object:
        return chunks.rollback(transaction, first, "as it was")

    with pytest.raises(LedgerConflict, match=r"another process published a version of the same chunk.*try again"):
        between(flow, rolls_back, alone(flow, rolls_back))
    assert flow.chunk("raw/1").version == 2
    assert_invariants(flow.psql)


def test_publishing_a_chunk_and_its_input_concurrently_does_not_deadlock(flow: Flow) -> None:
    flow.register("load: -> codes, raw", "clean: raw -> tidy")
    flow.register("load: -> codes, raw", "clean: raw, codes -> tidy")  # so that codes comes after raw in the table
    flow.produce("load", "1")
    cleaning = publishes(flow, claim(flow.ledger, "clean", "1"))
    flow.type(RESUBMIT_TYPED, "raw", "1")
    loading = publishes(flow, claim(flow.ledger, "load", "1"))
    with session(flow) as holding, ThreadPoolExecutor(2) as pool:
        holding.execute("select from dataflow.datastatus where datasetid = 'raw' and jobid = 'clean' for update")
        publishing = pool.submit(alone(flow, cleaning))
        _wait_until(lambda: waiting_for(flow, holding) > 0)
        other = pool.submit(alone(flow, loading))
        _wait_until(lambda: other.done() or _count(flow, "select count(*) from pg_locks where not granted") > 1)
        holding.commit()
        publishing.result(PATIENCE)
        other.result(PATIENCE)
    assert_invariants(flow.psql)


def test_a_policy_typed_during_a_registration_waits_and_takes_effect(flow: Flow) -> None:
    flow.register("load: -> raw")
    with session(flow) as registering, ThreadPoolExecutor(1) as pool:
        Transaction(registering).rows("lock_registry")
        typing = pool.submit(alone(flow, typed("update dataflow.job_policy set ordered = true where jobid = 'load'")))
        _wait_until(lambda: waiting_for(flow, registering) > 0)
        registering.execute("update dataflow.job_policy set lease = '20 minutes' where jobid = 'load'")
        registering.commit()
        typing.result(PATIENCE)
    found = flow.psql.execute("select lease::text, ordered from dataflow.job_policy where jobid = 'load'").fetchall()
    assert found == [("00:20:00", True)]


def test_two_concurrent_changes_of_a_job_both_take_effect(flow: Flow) -> None:
    flow.register("load: -> raw", "look: -> codes", "clean: raw -> tidy")
    ordering = typed("update dataflow.job_policy set ordered = true where jobid = 'clean'")
    adding = typed("insert into dataflow.job (jobid, itemtype, datasetid) values ('clean', 'IN', 'codes')")
    between(flow, ordering, alone(flow, adding))
    assert_invariants(flow.psql)
    for jobid, dataid in itertools.product(("load", "look"), ("1", "2")):
        flow.produce(jobid, dataid)
    assert [each.dataid for each in claim_next(flow.ledger, "clean", 2)] == ["1"]


def test_the_same_content_published_concurrently_is_refused_to_both_consumers(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    first, second = (publishes(flow, claim(flow.ledger, "load", dataid), "yesterday's file") for dataid in ("1", "2"))
    between(flow, first, alone(flow, second))
    for dataid in ("1", "2"):
        with pytest.raises(NoGo) as refused:
            claim(flow.ledger, "clean", dataid)
        assert refused.value.verdict.code is Code.WRONG_DATA
    assert_invariants(flow.psql)


def test_the_same_content_announced_concurrently_is_refused_to_both_consumers(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", raw=external("raw"))

    def announces(dataid: str) -> Operation:
        same = {DataId(dataid): NewManifest(location=f"there/{dataid}", content_digest="yesterday's file")}
        return lambda transaction: chunks.announce(transaction, DatasetId("raw"), [DataId(dataid)], same)

    between(flow, announces("1"), alone(flow, announces("2")))
    assert_invariants(flow.psql)
    assert claim_next(flow.ledger, "clean", 2) == []


def test_a_strictly_ordered_job_claims_concurrently_published_inputs_in_order(flow: Flow) -> None:
    flow.register("load: -> raw", job("clean: raw -> tidy", Policy(ordered=True)))
    later, earlier = (publishes(flow, claim(flow.ledger, "load", dataid)) for dataid in ("2", "1"))
    between(flow, later, alone(flow, earlier))
    assert_invariants(flow.psql)
    assert [each.dataid for each in claim_next(flow.ledger, "clean", 2)] == ["1"]


def test_an_earlier_chunk_that_appears_during_an_ordered_claim_waits(flow: Flow) -> None:
    flow.register("load: -> raw", job("clean: raw -> tidy", Policy(ordered=True)))
    flow.produce("load", "2")
    earlier = publishes(flow, claim(flow.ledger, "load", "1"))
    between(flow, takes("clean", "2"), alone(flow, earlier))
    assert_invariants(flow.psql)
    assert claim_next(flow.ledger, "clean", 2) == []


def test_of_two_concurrent_registrations_that_close_a_cycle_one_is_refused(flow: Flow) -> None:
    item = "insert into dataflow.job (jobid, itemtype, datasetid) values (%s, 'IN', %s), (%s, 'OUT', %s)"
    here, there = typed(item, "here", "a", "here", "b"), typed(item, "there", "b", "there", "a")
    with pytest.raises(InvalidDefinition, match="DataSets are made from themselves: a, b"):
        between(flow, here, alone(flow, there))
    assert _count(flow, "select count(*) from dataflow.job") == 2


def test_a_chunk_is_not_rewritten_while_a_concurrent_consumer_reads_it_in_place(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", raw=external("raw"))
    flow.plan(job("load: -> raw"), ["1"])
    flow.type("update dataflow.datastatus set status = 'READY' where datasetid = 'raw'")
    between(flow, takes("clean", "1"), alone(flow, typed_resubmit("raw/1")))
    assert flow.in_rows() == [("raw", "clean", "1")]
    assert claim_next(flow.ledger, "load") == []
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, "load", "1")
    assert refused.value.verdict.code is Code.LOCKED
    assert_invariants(flow.psql)


def test_a_chunk_resubmitted_while_its_in_place_reader_ends_can_be_rewritten(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", raw=external("raw"))
    flow.plan(job("load: -> raw"), ["1"])
    flow.type("update dataflow.datastatus set status = 'READY' where datasetid = 'raw'")
    reading = claim(flow.ledger, "clean", "1")
    between(flow, publishes(flow, reading), alone(flow, typed_resubmit("raw/1")))
    assert_invariants(flow.psql)
    assert [each.dataid for each in claim_next(flow.ledger, "load")] == ["1"]


@pytest.mark.parametrize("first", ["claim", "publish"])
def test_a_shared_input_stays_locked_for_a_claim_made_during_another_publish(flow: Flow, first: str) -> None:
    (daily,) = flow.register(job("daily: raw -> day", raw=ListedChunks(lambda _: ["a"])), raw=external("raw"))
    flow.announce("raw/a")
    flow.plan(daily, ["1", "2"])
    publishing, claiming = publishes(flow, claim(flow.ledger, "daily", "1")), takes("daily", "2")
    before, after = (claiming, publishing) if first == "claim" else (publishing, claiming)
    between(flow, before, alone(flow, after))
    assert [flow.status("day/1"), flow.status("day/2")] == ["READY", "RUNNING"]
    assert flow.in_rows() == [("raw", "daily", "a")]
    assert_invariants(flow.psql)


def heals_expired(transaction: Transaction) -> object:
    return healing.change(transaction, "heal_expired", healing.expired_claims(transaction))


SOMEONE: Final = "insert into dataflow.datastatus values"
WINDOW: Final = {"1": ["1", "2"], "2": ["2"], "3": ["3"], "4": ["1"]}


def operations_on_a_graph(flow: Flow) -> dict[str, Operation]:
    """What people, clients and verbs might do next. Another client made raw/2 READY."""
    load, look, _, daily, report, _ = flow.register(
        "load: -> raw",
        "look: -> codes",
        "clean: raw, codes -> tidy, extra",
        job("daily: raw -> day", raw=ListedChunks(lambda dataid: WINDOW[dataid])),
        job("report: raw -> paper", raw=ALL),
        "total: tidy -> sums",
        raw=Dataset(datasetid=DatasetId("raw"), location=str(flow.root / "raw"), foreign_ready="trusted"),
    )
    flow.plan(load, ["1", "2", "3"])
    for jobid, dataid in (("load", "1"), ("load", "3"), ("look", "1"), ("look", "2"), ("look", "3"), ("clean", "1")):
        flow.produce(jobid, dataid, f"{jobid} {dataid}")
    flow.type("update dataflow.datastatus set status = 'READY' where datasetid = 'raw' and dataid = '2'")
    flow.plan(daily, ["1", "2", "3"])
    flow.plan(report, ["1"])
    flow.plan(look, ["4", "5", "6"])
    flow.type(RESUBMIT_TYPED, "raw", "1")
    flow.type(RESUBMIT_TYPED, "tidy", "1")
    raw_1, clean_2, day_2 = (
        claim(flow.ledger, "load", "1"),
        claim(flow.ledger, "clean", "2"),
        claim(flow.ledger, "daily", "2"),
    )
    codes_5, codes_6 = claim(flow.ledger, "look", "5"), claim(flow.ledger, "look", "6")
    flow.type(
        "update dataflow.datastatus set lease_until = now() where locktype = 'OUT' and claim_id = %s", codes_6.claim_id
    )
    operations: dict[str, Operation] = {
        f"publish {name}": publishes(flow, claim, content)
        for name, claim, content in (
            ("raw/1", raw_1, None),
            ("tidy/2", clean_2, "the same"),
            ("day/2", day_2, None),
            ("codes/5 with the content of codes/3", codes_5, "look 3"),
        )
    }
    return {
        **operations,
        "renew raw/1 and tidy/2": lambda transaction: ledger_claims.renew(transaction, [raw_1, clean_2]),
        "fail raw/1": lambda transaction: ledger_claims.fail(transaction, [raw_1], ["disk full"], [None]),
        "claim clean/3": takes("clean", "3"),
        "claim daily/3": takes("daily", "3"),
        "claim look/4": takes("look", "4"),
        "type RESUBMIT raw/1": typed_resubmit("raw/1"),
        "type RESUBMIT raw/2": typed_resubmit("raw/2"),
        "type RESUBMIT raw/3": typed_resubmit("raw/3"),
        "type RESUBMIT extra/2": typed_resubmit("extra/2"),
        "type FAILED codes/3": typed(
            "update dataflow.datastatus set status = 'FAILED' where datasetid = 'codes' and dataid = '3'"
        ),
        "delete raw/3": typed("delete from dataflow.datastatus where datasetid = 'raw' and dataid = '3'"),
        "someone announces raw/5": typed(
            f"{SOMEONE} ('raw', 'someone', '5', 'OUT', 'READY', now()) on conflict do nothing"
        ),
        "someone writes raw/3": typed(
            f"{SOMEONE} ('raw', 'someone', '3', 'OUT', 'RUNNING', now()) on conflict do nothing"
        ),
        "hold tidy/1 and tidy/3": lambda transaction: ledger_operations.set_status(
            transaction, [key("tidy/1"), key("tidy/3")], Status.HOLD, None
        ),
        "plan daily/4": lambda transaction: registry.plan_chunks(transaction, daily, [DataId("4")]),
        "plan report/2": lambda transaction: registry.plan_chunks(transaction, report, [DataId("2")]),
        "heal": heals_expired,
    }


def operations_on_a_line(flow: Flow) -> dict[str, Operation]:
    """The same for a chain of Jobs with one input and one output each."""
    load, _, total, _ = flow.register("load: -> raw", "clean: raw -> tidy", "total: tidy -> sums", "share: sums -> all")
    flow.plan(load, ["1", "2", "3", "4"])
    for dataid in ("1", "2", "3"):
        flow.produce("load", dataid)
    flow.produce("clean", "3", "the third")
    flow.type(RESUBMIT_TYPED, "raw", "2")
    flow.produce("load", "2")
    tidy_1, tidy_2 = claim(flow.ledger, "clean", "1"), claim(flow.ledger, "clean", "2")
    flow.type(RESUBMIT_TYPED, "raw", "1")
    raw_1, raw_4 = claim(flow.ledger, "load", "1"), claim(flow.ledger, "load", "4")
    # Made from data that another client published.
    for chunk in ("sums/1", "all/1"):
        flow.announce(chunk)
    flow.type("delete from dataflow.datastatus where datasetid = 'sums'")
    with flow.ledger.statement() as statement:
        first_raw_2 = chunks.version(statement, key("raw/2"), 1)
    assert first_raw_2 is not None
    both = [(claim, of_claim(claim, str(flow.root))) for claim in (tidy_1, tidy_2)]
    change = "update dataflow.dataset set {} where datasetid = 'tidy'".format
    return {
        "publish raw/1 anew": publishes(flow, raw_1),
        "publish raw/4": publishes(flow, raw_4),
        "roll back raw/2": lambda transaction: chunks.rollback(transaction, first_raw_2, "as it was"),
        "publish tidy/1": publishes(flow, tidy_1),
        "publish tidy/2 with the content of tidy/3": publishes(flow, tidy_2, "the third"),
        "publish tidy/1 and tidy/2": lambda transaction: ledger_claims.publish(transaction, both),
        "fail tidy/1": lambda transaction: ledger_claims.fail(transaction, [tidy_1], ["disk full"], [None]),
        "claim total/3": takes("total", "3"),
        "claim clean/4": takes("clean", "4"),
        "plan total/1": lambda transaction: registry.plan_chunks(transaction, total, [DataId("1")]),
        "type RESUBMIT raw/1": typed_resubmit("raw/1"),
        "type RESUBMIT tidy/1": typed_resubmit("tidy/1"),
        "type RESUBMIT tidy/3": typed_resubmit("tidy/3"),
        "someone announces tidy/1": typed(f"{SOMEONE} ('tidy', 'someone', '1', 'OUT', 'READY', now())"),
        "someone writes tidy/1": typed(f"{SOMEONE} ('tidy', 'someone', '1', 'OUT', 'RUNNING', now())"),
        "someone writes sums/1": typed(f"{SOMEONE} ('sums', 'someone', '1', 'OUT', 'RUNNING', now())"),
        "total reads tidy/1": typed(f"{SOMEONE} ('tidy', 'total', '1', 'IN', 'RUNNING', now())"),
        "someone reads sums/1": typed(f"{SOMEONE} ('sums', 'someone', '1', 'IN', 'RUNNING', now())"),
        "declare another schema": typed(change("schema_hash = 'another'")),
        "declare other partitions": typed(change('partitions = \'{"kind": "static", "keys": ["2", "3"]}\'')),
        "order total": typed("update dataflow.job_policy set ordered = true where jobid = 'total'"),
        "total reads raw, too": typed(
            "insert into dataflow.job (jobid, itemtype, datasetid) values ('total', 'IN', 'raw') on conflict do nothing"
        ),
        "forget total": typed("delete from dataflow.job where jobid = 'total'"),
        "heal": heals_expired,
    }


@pytest.mark.parametrize("prepare", [operations_on_a_graph, operations_on_a_line])
def test_any_two_concurrent_operations_keep_the_invariants(
    flow: Flow, prepare: Callable[[Flow], dict[str, Operation]]
) -> None:
    operations = prepare(flow)
    assert_invariants(flow.psql)
    kept, broken = Kept.of(flow.psql), list[str]()
    pairs = sampled(list(itertools.product(operations, repeat=2)), fast=40)
    with session(flow) as mine:
        for first, second in pairs:
            kept.put_back()
            try:
                with contextlib.suppress(LedgerConflict):
                    between(flow, operations[first], alone(flow, operations[second]), mine)
                assert_invariants(flow.psql)
            except (AssertionError, OpenDataFlowError) as error:
                broken.append(f"{first}, and before its commit {second}: {str(error).splitlines()[0]}")
    assert not broken, "\n".join([f"{len(broken)} of {len(pairs)} pairs", *broken])
