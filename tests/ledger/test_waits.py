"""Nothing waits for ever: an open transaction stops nobody but those who need the same rows, and is named to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest

from opendataflow_dagster.ledger import claims as ledger_claims
from opendataflow_dagster.ledger.settling import settle
from opendataflow_dagster.model.errors import BlockedBySession, InvalidDefinition, NoGo, StaleAnswers
from opendataflow_dagster.model.ids import DataId, JobId
from opendataflow_dagster.model.job import Policy
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.register import register
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, job
from tests.invariants import assert_invariants

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
    assert [str(key) for key in healed.cascaded] == ["tidy/2"]
    said = "\n".join(healed.problems)
    assert "bad: " in said
    assert "regular expression" in said
    assert "localtime" in said
    assert "clean/1: " in said
