"""Nothing waits forever: an open transaction stops nobody but those who need the same rows, and is named to them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from opendataflow_dagster.ledger import claims as ledger_claims
from opendataflow_dagster.ledger import embedded_files, retry, schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.ledger.settling import settle
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import BlockedBySession, ClaimLost, InvalidDefinition, NoGo, StaleAnswers
from opendataflow_dagster.model.ids import DataId, DatasetId, JobId
from opendataflow_dagster.model.job import Policy
from opendataflow_dagster.protocol.claim import claim, claim_many, claim_next
from opendataflow_dagster.protocol.force import force
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold
from opendataflow_dagster.protocol.publish import StagedClaim, publish_many
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.release import fail, fail_many
from opendataflow_dagster.protocol.renew import renew_many
from tests.effort import PATIENCE_SECONDS, scaled
from tests.factories import Flow, job, key
from tests.invariants import assert_invariants
from tests.scripts import Shop
from tests.statements import count_statements

ROW = b"select from dataflow.datastatus where datasetid = %s and dataid = %s and locktype = 'OUT' for update"
RESUBMIT = (
    b"update dataflow.datastatus set status = 'RESUBMIT' where datasetid = %s and dataid = %s and locktype = 'OUT'"
)


@contextmanager
def person(flow: Flow) -> Iterator[psycopg.Connection]:
    """A psql session in which someone types, and leaves the transaction open."""
    with psycopg.connect(flow.url, application_name="psql") as connection:
        yield connection
        connection.rollback()


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


def has_work(flow: Flow) -> list[str]:
    """Two Jobs with chunks to do, and a Job that reads what they make."""
    load, look, _ = flow.register("load: -> raw", "look: -> codes", "clean: raw -> tidy")
    names = [str(n) for n in range(1, 21)]
    flow.plan(load, names)
    flow.plan(look, names)
    return names


def test_a_registration_beside_an_open_transaction_stops_no_writer_and_names_the_session(flow: Flow) -> None:
    has_work(flow)
    changed = replace(flow.dataset("raw"), schema_hash="another")
    with person(flow) as ada, ThreadPoolExecutor(1) as pool:
        ada.execute(RESUBMIT, ("raw", "1"))
        registering = pool.submit(register, flow.ledger, [changed])
        done = 0
        while not registering.done():
            flow.produce("look", str(done % 20 + 1)) if done < 20 else None
            flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'codes' and dataid = '1'")
            done += 1
        with pytest.raises(BlockedBySession) as refused:
            registering.result()
        pid, login = ada.info.backend_pid, ada.info.user
    assert done >= 10, "work went on while the registration waited"
    said = str(refused.value)
    assert f"waits for pid {pid} (login {login}, psql, idle in a transaction for 00:00:0" in said
    assert f"select pg_terminate_backend({pid}); then try again" in said
    assert register(flow.ledger, [changed]) == 1
    assert_invariants(flow.psql)


def test_an_open_change_of_the_registry_stops_no_writer_and_is_named_to_a_registration(flow: Flow) -> None:
    has_work(flow)
    flow.produce("load", "1")
    with person(flow) as ada:
        ada.execute(b"insert into dataflow.job (jobid, itemtype, datasetid) values ('clean', 'IN', 'codes')")
        flow.produce("load", "2")
        assert claim(flow.ledger, "clean", "1").dataid == "1"
        with pytest.raises(BlockedBySession, match=f"pid {ada.info.backend_pid} "):
            register(flow.ledger, [], [job("clean: raw -> tidy", Policy(ordered=True))])


def test_what_an_open_transaction_made_ready_is_seen_by_a_job_that_was_registered_meanwhile(flow: Flow) -> None:
    has_work(flow)
    flow.register("load: -> raw", total=flow.dataset("total"))
    with person(flow) as ada, ThreadPoolExecutor(1) as pool:
        ada.execute(b"insert into dataflow.datastatus values ('codes', 'someone', '99', 'OUT', 'READY', now())")
        registering = pool.submit(flow.register, "sum: codes -> sums")
        waiting = "select count(*) from pg_stat_activity where application_name = 'opendataflow' and state = 'active'"
        wait_until(lambda: flow.psql.execute(waiting.encode()).fetchone() != (0,))
        ada.commit()
        registering.result(PATIENCE_SECONDS)
    assert ("sum", "99") in flow.runnable()
    assert_invariants(flow.psql)


def test_a_rebuild_changes_and_locks_nothing_where_nothing_is_wrong(flow: Flow) -> None:
    names = has_work(flow)
    with person(flow) as ada:
        ada.execute(b"select from dataflow.runnable for update")
        ada.execute(b"select from dataflow.datastatus for update")
        healed = heal(flow.ledger, rebuild=True)
    assert (healed.added, healed.removed, healed.problems) == (0, 0, ())
    before = flow.psql.execute("select array_agg(xmin::text order by jobid, dataid) from dataflow.runnable").fetchone()
    heal(flow.ledger, rebuild=True)
    after = flow.psql.execute("select array_agg(xmin::text order by jobid, dataid) from dataflow.runnable").fetchone()
    assert before == after
    assert len(flow.runnable()) == 2 * len(names)


def test_a_rebuild_restores_what_is_missing_and_removes_what_is_too_much(flow: Flow) -> None:
    has_work(flow)
    flow.type("delete from dataflow.runnable where jobid = 'load' and dataid in ('1', '2')")
    flow.type("insert into dataflow.runnable (jobid, dataid, sort_key) values ('clean', '1', '')")
    healed = heal(flow.ledger, rebuild=True)
    assert (healed.added, healed.removed) == (2, 1)
    assert_invariants(flow.psql)


def test_a_chunk_is_not_claimed_on_answers_from_before_a_change_of_the_registry(flow: Flow) -> None:
    has_work(flow)
    flow.produce("load", "1")
    flow.type("update dataflow.dataset set schema_hash = 'another' where datasetid = 'raw'")
    jobid, named = JobId("clean"), [DataId("1")]
    with flow.ledger.transaction() as transaction:
        candidates = ledger_claims.named_candidates(transaction, jobid, named)
    assert len(candidates) == 1, "it is not settled yet"
    with pytest.raises(StaleAnswers), flow.ledger.transaction() as transaction:
        ledger_claims.claim(transaction, jobid, candidates, count=1, run_id=None, named=named)
    with pytest.raises(NoGo):
        claim(flow.ledger, "clean", "1")
    assert claim_next(flow.ledger, "clean") == []
    assert_invariants(flow.psql)


def test_a_chunk_that_someone_holds_is_settled_later_and_delays_no_other(flow: Flow) -> None:
    has_work(flow)
    for dataid in ("1", "2", "3"):
        flow.produce("load", dataid)
    flow.type("update dataflow.dataset set schema_hash = 'another' where datasetid = 'raw'")
    unsettled = b"select jobid, dataid from dataflow.unsettled"
    with person(flow) as ada:
        ada.execute(b"select from dataflow.runnable where jobid = 'clean' and dataid = '2' for update")
        settle(flow.ledger)
        blocked = flow.psql.execute(
            "select dataid from dataflow.runnable where jobid = 'clean' and blocked is not null"
        )
        assert {dataid for (dataid,) in blocked} == {"1", "3"}
        assert flow.psql.execute(unsettled).fetchall() == [("clean", "2")]
    heal(flow.ledger)
    assert flow.psql.execute(unsettled).fetchall() == []
    assert_invariants(flow.psql)


def test_any_number_of_broken_chunks_stops_neither_heal_nor_the_other_jobs(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than one portion of them: heal meets each once."""
    monkeypatch.setattr("opendataflow_dagster.ledger.settling.PORTION", 10)
    load, later = flow.register("load: -> raw", "zz: -> last")
    flow.plan(load, [f"{number}-{number}" for number in range(25)])
    flow.plan(later, ["1"])
    no_steps = """'{"kind": "range", "first": 0, "step": 0, "last": 99}'"""
    without_checks(flow, f"update dataflow.dataset set partitions = {no_steps} where datasetid = 'raw'")
    flow.type("select dataflow.unsettle(array['load'])")
    assert len(heal(flow.ledger).problems) == 25
    flow.type("select dataflow.unsettle(array['load', 'zz'])")
    healed = heal(flow.ledger)
    assert len(healed.problems) == 25
    assert all("division by zero" in problem for problem in healed.problems)
    assert [claim.dataid for claim in claim_next(flow.ledger, "zz")] == ["1"], "it comes after them, and is settled"
    flow.type("update dataflow.dataset set partitions = null where datasetid = 'raw'")
    assert heal(flow.ledger).problems == ()
    assert len(claim_next(flow.ledger, "load", 100)) == 25
    assert_invariants(flow.psql)


@pytest.mark.parametrize("zone", ["localtime", "Mars/Olympus", "UTC+25"])
def test_a_time_zone_that_postgres_does_not_know_is_refused_however_it_is_typed(flow: Flow, zone: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"DataSet today.*time zone"):
        register(flow.ledger, [replace(flow.dataset("today"), timezone=zone)])
    with pytest.raises(psycopg.Error, match=f"DataSet today: Postgres knows no time zone '{zone.replace('+', '.')}'"):
        flow.type("insert into dataflow.dataset (datasetid, timezone) values ('today', %s)", zone)
    flow.register("load: -> raw")
    with pytest.raises(psycopg.Error, match="Postgres knows no time zone"):
        flow.type("update dataflow.dataset set timezone = %s", zone)


def without_checks(flow: Flow, statement: str) -> None:
    """As a restored dump, or an owner who switched the triggers off."""
    with flow.psql.transaction():
        flow.psql.execute("set local session_replication_role = replica")
        flow.psql.execute(statement.encode())


def test_one_broken_row_of_each_kind_never_stops_heal_for_the_others(flow: Flow) -> None:
    again = Policy(retry_on="disk", max_attempts=5)
    flow.register(
        job("bad: -> worse", again),
        job("load: -> raw", again),
        job("clean: raw -> tidy", Policy(cascade=True)),
        "daily: today -> days",
    )
    for jobid in ("bad", "load"):
        for dataid in ("1", "2", "3"):
            flow.plan(job(f"{jobid}: -> {'worse' if jobid == 'bad' else 'raw'}"), [dataid])
    for dataid in ("1", "2", "3"):
        flow.produce("load", dataid)
        flow.produce("clean", dataid)
    for dataid in ("1", "2"):
        flow.type(RESUBMIT.decode(), "raw", dataid)
        flow.produce("load", dataid)
    failed = (
        "update dataflow.datastatus set status = 'FAILED', reason = 'disk full' where datasetid = %s and dataid = %s"
    )
    for datasetid, dataid in (("worse", "1"), ("worse", "2"), ("raw", "3")):
        flow.type(failed, datasetid, dataid)
    flow.plan(job("load: -> raw"), ["4"])
    claim(flow.ledger, "load", "4")
    flow.type("update dataflow.datastatus set lease_until = now() where claim_id is not null and locktype = 'OUT'")
    flow.type("alter table dataflow.job_policy drop constraint retry_on_is_a_regular_expression")
    without_checks(flow, "update dataflow.job_policy set retry_on = '(' where jobid = 'bad'")
    without_checks(flow, "update dataflow.dataset set timezone = 'localtime' where datasetid = 'today'")
    without_checks(
        flow, "update dataflow.data_manifest set inputs = '{\"odd\": 1}' where datasetid = 'tidy' and dataid = '1'"
    )
    healed = heal(flow.ledger, rebuild=True)
    assert [str(key) for key in healed.resubmitted] == ["raw/4"]
    assert [str(key) for key in healed.retried] == ["raw/3"]
    assert [str(key) for key in healed.rebuilt] == ["tidy/1", "tidy/2"]
    said = "\n".join(healed.problems)
    assert "bad: " in said
    assert "regular expression" in said
    assert "localtime" in said


#: Whoever writes the row of clean/1 meets an error, as on a damaged page.
DAMAGE = b"""
    create function dataflow.damaged() returns trigger language plpgsql as $$
    begin
        raise data_corrupted using message = 'invalid page';
    end
    $$;
    create trigger damaged before insert or update on dataflow.runnable for each row
        when (new.jobid = 'clean' and new.dataid = '1') execute function dataflow.damaged();
"""


def test_a_broken_chunk_stops_no_claim_of_the_others_of_its_job(flow: Flow) -> None:
    flow.register("seed: -> seed", "load: seed -> raw", "clean: raw -> tidy")
    for dataid in ("1", "2", "3"):
        flow.produce("seed", dataid)
        flow.produce("load", dataid)
    flow.type("delete from dataflow.runnable where jobid = 'clean' and dataid = '1'")
    with flow.psql.transaction():
        flow.psql.execute(DAMAGE)
    flow.type("select dataflow.unsettle(array['clean'])")
    (problem,) = heal(flow.ledger).problems
    assert problem.startswith("clean/1: ")
    assert [taken.dataid for taken in claim_next(flow.ledger, "clean", 3)] == ["2", "3"]
    flow.type("drop trigger damaged on dataflow.runnable")
    flow.type("drop function dataflow.damaged()")
    assert heal(flow.ledger).problems == ()
    assert [taken.dataid for taken in claim_next(flow.ledger, "clean", 3)] == ["1"]
    assert_invariants(flow.psql)


# ---- a running script, whose row a person holds


@pytest.fixture
def shop(flow: Flow, tmp_path: Path) -> Shop:
    return Shop(flow=flow, folder=tmp_path)


@contextmanager
def runs(shop: Shop, script: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`odf run` in a process of its own, which has printed its first line."""
    with shop.start("run", *words, script) as running:
        try:
            assert read_line(running) == "begun\n"
            yield running
        finally:
            running.kill()


def read_line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline()


def test_output_goes_on_and_the_lease_is_renewed_as_soon_as_the_row_is_free(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(lease=timedelta(seconds=12)))
    go_on, end = shop.folder / "go_on", shop.folder / "end"
    script = shop.script(
        f"echo begun; until [ -e {go_on} ]; do sleep 0.05; done; echo more; until [ -e {end} ]; do sleep 0.05; done"
    )
    with person(shop.flow) as ada, runs(shop, script) as running:
        leased = shop.flow.chunk("raw/1").lease_until
        assert leased is not None
        ada.execute(ROW, ("raw", "1"))
        # Long enough for the first renewal to find the row held.
        due = leased - timedelta(seconds=7)
        wait_until(lambda: shop.flow.psql.execute("select now() > %s", (due,)).fetchone() == (True,))
        assert shop.flow.chunk("raw/1").lease_until == leased
        go_on.touch()
        assert read_line(running) == "more\n"
        ada.rollback()
        wait_until(lambda: (shop.flow.chunk("raw/1").lease_until or leased) > leased)
        end.touch()
        _, said = running.communicate(timeout=PATIENCE_SECONDS)
        assert running.returncode == 0, said
    assert shop.flow.chunk("raw/1").version == 1


def test_the_timeout_of_a_script_is_enforced_while_its_row_is_held(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(lease=timedelta(seconds=60)))
    ended = shop.folder / "ended"
    script = shop.script(f"trap 'touch {ended}; exit 1' TERM; echo begun; while true; do sleep 0.05; done")
    with person(shop.flow) as ada, runs(shop, script, "--timeout", "3") as running:
        ada.execute(ROW, ("raw", "1"))
        wait_until(ended.exists)
        ada.rollback()
        _, said = running.communicate(timeout=PATIENCE_SECONDS)
        assert running.returncode == 140, said
    assert (shop.flow.chunk("raw/1").reason or "").startswith("timed out after 3 s")


@pytest.mark.slow
def test_sigterm_ends_a_run_while_its_row_is_held_and_names_the_session(shop: Shop) -> None:
    shop.register("load: -> raw", policy=Policy(lease=timedelta(minutes=10)))
    with person(shop.flow) as ada, runs(shop, shop.script("echo begun; sleep 1000")) as running:
        ada.execute(ROW, ("raw", "1"))
        running.terminate()
        _, said = running.communicate(timeout=PATIENCE_SECONDS)
        assert f"pid {ada.info.backend_pid} (login {ada.info.user}, psql, idle in a transaction" in said
        assert running.returncode == 133


def test_a_row_that_is_held_does_not_keep_other_leases_from_being_renewed(flow: Flow) -> None:
    has_work(flow)
    held, free = claim(flow.ledger, "load", "1"), claim(flow.ledger, "load", "2")
    gone = claim(flow.ledger, "look", "1")
    flow.type(RESUBMIT.decode(), "codes", "1")
    with person(flow) as ada:
        ada.execute(ROW, ("raw", "1"))
        renewal = renew_many(flow.ledger, [held, free, gone])
    assert [each.claim_id for each in renewal.busy] == [held.claim_id]
    assert [each.claim_id for each in renewal.renewed] == [free.claim_id]
    assert [each.claim_id for each in renewal.lost] == [gone.claim_id]
    assert renewal.renewed[0].lease_until > free.lease_until
    assert [each.claim_id for each in renew_many(flow.ledger, [held]).renewed] == [held.claim_id]


# ---- giving way


def test_a_verb_gives_up_after_a_short_wait_and_names_the_session(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "VERB_SECONDS", 0.5)
    has_work(flow)
    mine = claim(flow.ledger, "load", "2")
    with person(flow) as ada:
        ada.execute(ROW, ("raw", "1"))
        ada.execute(ROW, ("raw", "2"))
        named = f"pid {ada.info.backend_pid} .*psql, idle in a transaction.*pg_terminate_backend"
        for verb in (
            lambda: hold(flow.ledger, [key("raw/1")], by="grace"),
            lambda: fail(flow.ledger, mine, "disk full"),
            lambda: flow.publish(mine),
            lambda: force(flow.ledger, "load", "1", by="grace"),
        ):
            with pytest.raises(BlockedBySession, match=named):
                verb()
    assert flow.status("raw/2") == "RUNNING"


def test_every_connection_limits_its_statements_and_its_waits(flow: Flow) -> None:
    with flow.ledger.transaction() as transaction:
        shown = transaction._connection.execute(
            "select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,"
            " current_setting('deadlock_timeout') as deadlock"
        ).fetchone()
    assert shown == {"statement": "5min", "lock": "200ms", "deadlock": "1s"}


@pytest.mark.parametrize("name", ["publish", "fail", "hold", "heal"])
def test_a_typed_statement_is_never_the_deadlock_victim_of_a_verb(flow: Flow, name: str) -> None:
    """The verb holds a row that the person wants next, and wants the one that the person holds."""
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1", "2"])
    claims = claim_many(flow.ledger, "load", ["1", "2"]).claims
    if name == "heal":
        flow.type("update dataflow.datastatus set lease_until = now() where claim_id is not null")
    staged = [StagedClaim(claim=each, manifests={DatasetId("raw"): flow.manifest(each)}) for each in claims]
    verbs: dict[str, Callable[[], object]] = {
        "publish": lambda: publish_many(flow.ledger, staged),
        "fail": lambda: retry.retry_conflicts(lambda: fail_many(flow.ledger, claims, ["disk full"] * 2)),
        "hold": lambda: hold(flow.ledger, [key("raw/1"), key("raw/2")], by="grace"),
        "heal": lambda: heal(flow.ledger),
    }
    with person(flow) as ada, ThreadPoolExecutor(1) as pool:
        ada.execute(RESUBMIT, ("raw", "2"))
        working = pool.submit(verbs[name])
        waiting = "select count(*) from pg_stat_activity where %s = any (pg_blocking_pids(pid))"
        pid = ada.info.backend_pid
        wait_until(lambda: working.done() or flow.psql.execute(waiting, (pid,)).fetchone() != (0,))
        ada.execute(RESUBMIT, ("raw", "1"))  # a deadlock would be an error here
        ada.commit()
        with suppress(ClaimLost):
            working.result(PATIENCE_SECONDS)
    assert_invariants(flow.psql)


@pytest.mark.slow
def test_giving_way_for_long_writes_few_lines_into_the_log_of_the_server(tmp_path: Path) -> None:
    """A person holds rows that claimers, a publisher and heal want, for more than ten seconds."""
    server = EmbeddedPostgres(tmp_path / "home")
    url = server.start()
    try:
        with Ledger(url, connections=6) as ledger, psycopg.connect(url, autocommit=True) as psql:
            schema.install(ledger)
            flow = Flow(ledger=ledger, url=url, psql=psql, root=tmp_path)
            has_work(flow)
            mine = claim(flow.ledger, "load", "2")
            log = server.status().log
            size = log.stat().st_size
            with person(flow) as ada, ThreadPoolExecutor(6) as pool:
                ada.execute(b"select from dataflow.runnable where jobid = 'load' and dataid = '1' for update")
                ada.execute(ROW, ("raw", "2"))
                claiming = [pool.submit(claim, flow.ledger, "load", "1") for _ in range(3)]
                publishing = pool.submit(flow.publish, mine)
                for _ in range(20):
                    heal(flow.ledger)
                with pytest.raises(BlockedBySession):
                    publishing.result(PATIENCE_SECONDS)
                ada.rollback()
                for each in claiming:
                    with suppress(NoGo):
                        each.result(PATIENCE_SECONDS)
            lines = [line for line in log.read_bytes()[size:].decode().splitlines() if "ERROR" in line]
            print(f"{len(lines)} errors in the log")  # noqa: T201 - shown with -s
            assert len(lines) <= 100, lines[:10]
    finally:
        server.stop()


# ---- what grows with what changes


def test_a_changed_job_is_settled_by_reading_its_own_chunks_whatever_was_planned_before(flow: Flow) -> None:
    """A session that has seen the tables empty keeps its plans."""
    load, _ = flow.register("load: -> raw", "other: -> more")
    session = flow.psql
    session.execute("set plan_cache_mode = force_generic_plan; set enable_seqscan = off")
    settle_other = b"select dataflow.rebuild_turns('other'), dataflow.evaluate_again('other', array['1'])"
    session.execute(settle_other)
    flow.plan(load, map(str, range(2000)))

    def rows_read() -> int:
        session.execute("select pg_stat_force_next_flush()")
        read = session.execute(
            "select sum(pg_stat_get_tuples_returned(i.indexrelid)) from pg_index i"
            " where i.indrelid = 'dataflow.datastatus'::regclass"
        ).fetchone()
        assert read is not None
        return int(read[0])

    before = rows_read()
    session.execute(settle_other)
    assert rows_read() - before < 100


@pytest.mark.parametrize("count", [scaled(50_000, fast=2_000)])
def test_importing_variables_evaluates_no_chunk_and_writes_their_history_together(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    flow.register("load: -> raw")
    flow.plan(job("load: -> raw"), ["1", "2"])
    counts = "select xmin::text from dataflow.runnable order by dataid"
    before = flow.psql.execute(counts).fetchall()
    statements = count_statements(monkeypatch)
    variables = {f"V{number}": str(number) for number in range(count)}
    began = time.monotonic()
    register(flow.ledger, [], [replace(job("load: -> raw"), environment=variables)])
    print(f"{count} variables in {time.monotonic() - began:.1f} s")  # noqa: T201 - shown with -s
    assert sum(statements.values()) <= 12, statements
    assert flow.psql.execute(counts).fetchall() == before, "no answer depends on a variable"
    assert flow.psql.execute("select count(*) from dataflow.unsettled").fetchone() == (0,)
    written = "select count(*) from dataflow.registry_event where after ->> 'itemvalue' is not null"
    assert flow.psql.execute(written).fetchone() == (count,)
    changed = {**variables, "V7": "another"}
    register(flow.ledger, [], [replace(job("load: -> raw"), environment=changed)])
    flow.type("update dataflow.job set itemvalue = 'typed' where itemtype = 'V8'")
    last = flow.psql.execute("select before, after from dataflow.registry_event order by event_id desc limit 1")
    assert last.fetchone() == ({"itemvalue": "8"}, {"itemvalue": "typed"})


def test_the_log_of_the_embedded_server_is_rotated_by_size_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_files, "LOG_KEPT_BYTES", 20_000)
    server = EmbeddedPostgres(tmp_path / "home")
    with psycopg.connect(server.start(), autocommit=True) as psql:
        try:
            log = server.status().log
            for number in range(1_000):
                with suppress(psycopg.Error):
                    psql.execute(f"select no_such_function({number})".encode())
            assert log.stat().st_size > 20_000
            server.start()  # as every command and the heal sensor do
            assert log.stat().st_size <= 20_000
            assert log.with_name("postgres.log.1").stat().st_size <= 20_000
            with suppress(psycopg.Error):
                psql.execute(b"select one_more_error()")
            wait_until(lambda: "one_more_error" in log.read_text())
        finally:
            psql.close()
            server.stop()


def test_a_claim_of_an_ordered_job_reads_no_more_rows_when_many_chunks_wait(flow: Flow) -> None:
    raw = Dataset(datasetid=DatasetId("raw"), foreign_ready="trusted")
    flow.register(job("load: raw -> tidy", Policy(ordered=True)), raw=raw)
    for dataid in ("1", "2", "3", "4"):
        flow.announce(f"raw/{dataid}")
    few = _rows_read(flow, _claim_and_publish)
    flow.psql.execute(
        "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)"
        " select 'raw', 'someone', number::text, 'OUT', 'READY' from generate_series(5, 2000) number"
    )
    # The first after a plan also reads what the plan left dead.
    _claim_and_publish(flow)
    many = _rows_read(flow, _claim_and_publish)
    assert 0 < many < few + 200, (few, many)
    assert_invariants(flow.psql)


def _claim_and_publish(flow: Flow) -> None:
    (claimed,) = claim_next(flow.ledger, "load")
    flow.publish(claimed)


def _rows_read(flow: Flow, act: Callable[[Flow], None]) -> int:
    """By index or from end to end, in the whole schema."""
    count = (
        "select sum(pg_stat_get_tuples_fetched(c.oid) + pg_stat_get_tuples_returned(c.oid))::bigint from pg_class c"
        " where c.relnamespace = 'dataflow'::regnamespace and c.relkind in ('r', 'i')"
    )

    def counted() -> int:
        with flow.ledger.statement() as statement:
            statement.run_text(b"select pg_stat_force_next_flush()")
        flow.psql.execute("select pg_stat_clear_snapshot()")
        ((rows,),) = flow.psql.execute(count).fetchall()
        return int(rows)

    before = counted()
    act(flow)
    return counted() - before
