"""A session that is in the way is named, to whoever waits: commands that only read, claims, and every role."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from opendataflow_dagster.insight.status import status
from opendataflow_dagster.ledger import retry
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import BlockedBySession
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.protocol import claim as claiming
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.hold import hold
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, key
from tests.logins import logins_of
from tests.operator import Odf

LOCK = b"lock table dataflow.datastatus in access exclusive mode"
READS = [
    ("status",),
    ("chunks", "raw"),
    ("chunk", "show", "raw", "1"),
    ("why", "clean"),
    ("why", "clean", "1"),
    ("why", "--failed"),
    ("plan", "clean", "1"),
    ("report",),
    ("metrics",),
    ("digest",),
    ("resubmit", "raw", "1"),
]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "VERB_SECONDS", 0.1)


@pytest.fixture
def made(flow: Flow) -> Flow:
    flow.register("load: -> raw", "clean: raw -> tidy")
    flow.produce("load", "1")
    return flow


@contextmanager
def typist(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, application_name="psql") as connection:
        yield connection
        connection.rollback()


@pytest.mark.usefixtures("impatient")
def test_a_command_that_only_reads_names_the_session_that_locks_the_table(made: Flow) -> None:
    odf = Odf(url=made.url)
    with typist(made.url) as ada:
        ada.execute(LOCK)
        for words in READS:
            said = odf.error(*words, exit_code=133)
            assert f"waits for pid {ada.info.backend_pid} (login " in said, words
            assert "psql, idle in a transaction for 00:00:" in said, words
            assert f"select pg_terminate_backend({ada.info.backend_pid})" in said, words


def test_a_command_that_only_reads_waits_for_a_lock_that_is_released_soon(made: Flow) -> None:
    """Upstream's client locks the table for each of its transactions."""
    with typist(made.url) as upstream, ThreadPoolExecutor(1) as pool:
        upstream.execute(LOCK)
        reading = pool.submit(Odf(url=made.url), "status")
        with pytest.raises(TimeoutError):
            reading.result(timeout=1)
        upstream.rollback()
        assert reading.result(timeout=PATIENCE_SECONDS).exit_code == 0


@pytest.mark.parametrize("dataid", ["1", None])
def test_a_claim_names_the_session_that_locks_the_table(
    made: Flow, monkeypatch: pytest.MonkeyPatch, dataid: str | None
) -> None:
    monkeypatch.setattr(claiming, "PATIENCE_SECONDS", 0.5)
    with typist(made.url) as ada:
        ada.execute(LOCK)
        with pytest.raises(BlockedBySession, match=f"job clean waits for pid {ada.info.backend_pid} .*psql, idle"):
            claim(made.ledger, "clean", dataid) if dataid else claim_next(made.ledger, "clean")


@pytest.mark.usefixtures("impatient")
def test_a_session_that_holds_a_lock_of_ours_is_named(made: Flow) -> None:
    """Postgres lets every login take an advisory lock."""
    with logins_of(made.url, "way") as urls, psycopg.connect(urls["reader"], autocommit=True) as grace:
        grace.execute("select pg_advisory_lock(hashtext('dataflow'), hashtext('evaluation'))")
        with pytest.raises(BlockedBySession) as refused:
            hold(made.ledger, [key("raw/1")], by="ada")
        named = f"pid {grace.info.backend_pid} (login way_reader, no application name, idle for 00:00:"
        assert f": set status waits for {named}" in str(refused.value)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("role", ["reader", "operator", "admin"])
def test_every_role_is_told_who_is_in_the_way(made: Flow, role: str) -> None:
    with logins_of(made.url, "way") as urls, typist(made.url) as ada:
        ada.execute(LOCK)
        with (
            Ledger(urls[role]) as ledger,
            pytest.raises(BlockedBySession, match=f"waits for pid {ada.info.backend_pid} "),
        ):
            status(ledger)


def test_a_verb_that_gave_way_still_has_the_chunks_that_a_generator_gave_it(made: Flow) -> None:
    with typist(made.url) as ada, ThreadPoolExecutor(1) as pool:
        ada.execute(b"select from dataflow.datastatus where datasetid = 'raw' for update")
        holding = pool.submit(hold, made.ledger, (key(text) for text in ["raw/1"]), by="grace")
        with pytest.raises(TimeoutError):
            holding.result(timeout=1)
        ada.rollback()
        assert holding.result(timeout=PATIENCE_SECONDS) == [key("raw/1")]
    assert made.status("raw/1") == "HOLD"


def test_a_version_that_is_replaced_in_an_open_transaction_stops_no_other_chunk(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", "sum: tidy -> sums", raw=Dataset(datasetid=DatasetId("raw")))
    for dataid in ("1", "2", "3"):
        flow.announce(f"raw/{dataid}")
    flow.produce("clean", "1")
    flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'raw' and dataid = '1'")
    with typist(flow.url) as ada:
        ada.execute(b"update dataflow.datastatus set status = 'READY' where datasetid = 'raw' and dataid = '1'")
        flow.produce("clean", "2")
        flow.psql.execute("set lock_timeout = '30s'")
        flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'raw' and dataid = '3'")
    assert flow.status("tidy/2") == "READY"
