"""Unchanged upstream OpenDataFlow on our schema: its statements, its columns, and its clients next to ours."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.ledger.chunks import Event
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import ClaimLost, NoGo
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.model.verdict import Code
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold
from opendataflow_dagster.protocol.publish import StagedClaim, publish, publish_many
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.request import request
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.rollback import rollback
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, job, key


@pytest.fixture
def url(emptied_url: str) -> str:
    return emptied_url


# ---- the client


@dataclass(frozen=True)
class Upstream:
    """An upstream client with its own statements. It knows three tables and no schema name."""

    connection: psycopg.Connection

    def run(self, statement: str, *values: object) -> int:
        return self.connection.execute(statement.encode(), values).rowcount

    def rows(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        return self.connection.execute(statement.encode(), values).fetchall()

    def columns(self, statement: str, *values: object) -> list[str]:
        found = self.connection.execute(statement.encode(), values).description
        return [column.name for column in found or ()]

    def register(self, jobid: str, *, inputs: str = "", outputs: str) -> None:
        for itemtype, names in (("IN", inputs), ("OUT", outputs)):
            for name in names.split():
                self.run("insert into dataset (datasetid) values (%s) on conflict (datasetid) do nothing", name)
                self.run(
                    "insert into job (datasetid, itemtype, jobid) values (%s, %s, %s)"
                    " on conflict (datasetid, jobid) do nothing",
                    name,
                    itemtype,
                    jobid,
                )

    def next_chunk(self, jobid: str) -> str | None:
        found = self.rows(NEXT_CHUNK, jobid, jobid, jobid, jobid)
        return str(found[0][0]) if found else None

    def claim_next(self, jobid: str) -> str | None:
        """Choose and lock a chunk in one transaction that blocks all others."""
        with self.connection.transaction():
            self.run("lock datastatus in access exclusive mode")
            dataid = self.next_chunk(jobid)
            if dataid is not None:
                self.begin(jobid, dataid)
        return dataid

    def begin(self, jobid: str, dataid: str) -> None:
        for datasetid, locktype in self.items(jobid):
            changed = self.run(
                "update datastatus set status=%s,locktype=%s where dataid=%s and datasetid=%s and jobid=%s",
                "RUNNING",
                locktype,
                dataid,
                datasetid,
                jobid,
            )
            if not changed:
                self.run(
                    "insert into datastatus values (%s, %s, %s, %s, 'RUNNING', now())",
                    datasetid,
                    jobid,
                    dataid,
                    locktype,
                )

    def end(self, jobid: str, dataid: str, status: str = "READY") -> None:
        self.run(
            "update datastatus set status=%s where jobid=%s and dataid=%s and locktype='OUT'", status, jobid, dataid
        )
        self.run("delete from datastatus where jobid=%s and dataid=%s and locktype='IN'", jobid, dataid)

    def items(self, jobid: str) -> list[tuple[object, ...]]:
        return self.rows("select datasetid, itemtype from job where jobid=%s and itemtype in ('IN', 'OUT')", jobid)


# The first dataid of which every input is READY, no input is being read by the job, and every output is free.
NEXT_CHUNK = """
    select d.dataid
      from datastatus d
      join job source on source.datasetid = d.datasetid and source.itemtype = 'IN' and source.jobid = %s
     where d.locktype = 'OUT' and d.status = 'READY'
       and not exists (select 1 from job i
                         join datastatus reading on reading.datasetid = i.datasetid and reading.jobid = i.jobid
                        where i.jobid = %s and i.itemtype = 'IN'
                          and reading.locktype = 'IN' and reading.dataid = d.dataid)
       and not exists (select 1 from job o
                         join datastatus made on made.datasetid = o.datasetid
                        where o.jobid = %s and o.itemtype = 'OUT'
                          and made.dataid = d.dataid and made.status <> 'RESUBMIT')
       and not exists (select 1 from job i
                        where i.jobid = %s and i.itemtype = 'IN'
                          and not exists (select 1 from datastatus ready
                                           where ready.datasetid = i.datasetid and ready.dataid = d.dataid
                                             and ready.locktype = 'OUT' and ready.status = 'READY'))
     order by d.dataid
     limit 1
       for update of d skip locked
"""


@contextmanager
def upstream_client(url: str) -> Iterator[Upstream]:
    with psycopg.connect(url, autocommit=True, options="-c search_path=dataflow") as connection:
        yield Upstream(connection)


@pytest.fixture
def upstream(url: str) -> Iterator[Upstream]:
    with upstream_client(url) as client:
        yield client


@pytest.fixture
def batch_login(url: str) -> Iterator[str]:
    """A separate login with the rights of an operator."""
    name = "upstream_batch"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create role {name} login password 'secret' in role dataflow_operator".encode())
        try:
            yield make_conninfo("", **{**conninfo_to_dict(url), "user": name, "password": "secret"})
        finally:
            connection.execute(f"drop role {name}".encode())


# ---- what the tests look at


def history(flow: Flow, chunk: str) -> list[Event]:
    with flow.ledger.statement() as statement:
        return chunks.history(statement, key(chunk))


def steps(flow: Flow, chunk: str) -> list[tuple[str, str | None, str | None]]:
    return [(event.locktype, event.old_status, event.new_status) for event in history(flow, chunk)]


def refusal(flow: Flow, jobid: str, dataid: str) -> Code | None:
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, jobid, dataid)
    return refused.value.verdict.code


def assert_nothing_to_heal(flow: Flow) -> None:
    """The derived rows equal those of a rebuild."""
    healed = heal(flow.ledger, rebuild=True)
    assert (healed.added, healed.removed, healed.strays) == (0, 0, 0)


GUIDE = Path(__file__).parents[2] / "docs/guides/upstream.md"

# ---- its columns

UPSTREAM_COLUMNS = {
    "job": ["jobid", "itemtype", "datasetid", "itemvalue", "modified"],
    "dataset": ["datasetid", "hostname", "database", "schemaname", "tablename", "username", "encryptedpass"],
    "datastatus": ["datasetid", "jobid", "dataid", "locktype", "status", "modified"],
}


@pytest.mark.parametrize("table", UPSTREAM_COLUMNS)
def test_upstream_columns_come_first_and_all_others_have_defaults(upstream: Upstream, table: str) -> None:
    found = upstream.rows(
        "select column_name, is_nullable = 'YES' or column_default is not null or is_identity = 'YES'"
        "  from information_schema.columns where table_schema = 'dataflow' and table_name = %s"
        " order by ordinal_position",
        table,
    )
    wanted = UPSTREAM_COLUMNS[table]
    assert [name for name, _ in found[: len(wanted)]] == wanted
    assert [name for name, fills_itself in found[len(wanted) :] if not fills_itself] == []
    assert upstream.columns(f"select * from {table}")[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("table", "wanted"),
    [("datastatus", ["datasetid", "jobid", "dataid"]), ("dataset", ["datasetid"]), ("job", ["datasetid", "jobid"])],
)
def test_upstream_primary_keys_exist(upstream: Upstream, table: str, wanted: list[str]) -> None:
    """As a primary key, or as the unique key that `on conflict` needs."""
    found = upstream.rows(
        "select array_agg(a.attname::text order by k.place)"
        "  from pg_constraint c"
        " cross join lateral unnest(c.conkey) with ordinality as k(attnum, place)"
        "  join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum"
        " where c.conrelid = %s::regclass and c.contype in ('p', 'u') group by c.oid",
        table,
    )
    assert (wanted,) in found


# ---- its statements


def test_a_status_inserted_by_position_is_complete(upstream: Upstream, flow: Flow) -> None:
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    chunk = flow.chunk("raw/1")
    assert (chunk.jobid, chunk.status, chunk.attempt, chunk.retries) == ("load", "READY", 0, 0)
    assert (chunk.claim_id, chunk.lease_until, chunk.manifest_id, chunk.run_id) == (None, None, None, None)
    assert steps(flow, "raw/1") == [("OUT", None, "READY")]


def test_a_status_inserted_by_name_in_any_order_is_complete(upstream: Upstream, flow: Flow) -> None:
    upstream.run(
        "insert into datastatus (status, dataid, locktype, jobid, datasetid)"
        " values ('RUNNING', '1', 'OUT', 'load', 'raw')"
    )
    assert flow.status("raw/1") == "RUNNING"
    assert steps(flow, "raw/1") == [("OUT", None, "RUNNING")]


def test_modified_is_maintained_whatever_a_client_writes(upstream: Upstream, flow: Flow) -> None:
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'FAILED', '2001-01-01')")
    inserted = flow.chunk("raw/1").modified
    assert abs((inserted - datetime.now(UTC)).total_seconds()) < 300
    upstream.run("update datastatus set status='RESUBMIT' where datasetid='raw'")
    assert flow.chunk("raw/1").modified > inserted


def test_every_typed_change_is_in_the_history_with_the_login_that_made_it(flow: Flow, batch_login: str) -> None:
    with upstream_client(batch_login) as client:
        client.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'RUNNING', now())")
        client.run("insert into datastatus values ('raw', 'clean', '1', 'IN', 'RUNNING', now())")
        client.run("update datastatus set status='FAILED' where jobid='load' and dataid='1' and locktype='OUT'")
        client.run("update datastatus set status='RESUBMIT' where datasetid='raw' and dataid='1' and locktype='OUT'")
        client.run("delete from datastatus where jobid='clean' and dataid='1' and locktype='IN'")
        client.run("delete from datastatus where jobid='load' and dataid='1'")
    assert steps(flow, "raw/1") == [
        ("OUT", None, "RUNNING"),
        ("IN", None, "RUNNING"),
        ("OUT", "RUNNING", "FAILED"),
        ("OUT", "FAILED", "RESUBMIT"),
        ("IN", "RUNNING", None),
        ("OUT", "RESUBMIT", None),
    ]
    assert {event.login for event in history(flow, "raw/1")} == {"upstream_batch"}


def test_a_typed_change_of_many_rows_is_recorded_for_each(upstream: Upstream, flow: Flow) -> None:
    upstream.run(
        "insert into datastatus select 'raw', 'load', n::text, 'OUT', 'FAILED', now() from generate_series(1, 100) as n"
    )
    assert upstream.run("update datastatus set status='RESUBMIT' where status='FAILED'") == 100
    for dataid in ("1", "50", "100"):
        assert steps(flow, f"raw/{dataid}") == [("OUT", None, "FAILED"), ("OUT", "FAILED", "RESUBMIT")]


def test_a_typed_change_of_a_key_is_recorded_for_both_keys(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into datastatus values ('raw', 'load', '2024-01-0l', 'OUT', 'READY', now())")
    upstream.run("update datastatus set dataid='2024-01-01' where dataid='2024-01-0l'")
    assert steps(flow, "raw/2024-01-0l")[1:], "the old name has lost its row"
    assert steps(flow, "raw/2024-01-01"), "the new name has got it"
    assert flow.runnable() == [("clean", "2024-01-01")]


def test_a_typed_change_of_status_and_locktype_takes_effect(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'IN', 'RUNNING', now())")
    statement = "update datastatus set status=%s,locktype=%s where dataid=%s and datasetid=%s and jobid=%s"
    upstream.run(statement, "READY", "OUT", "1", "raw", "load")
    assert steps(flow, "raw/1")[-1] == ("OUT", "RUNNING", "READY")
    assert flow.runnable() == [("clean", "1")]
    upstream.run(statement, "RUNNING", "IN", "1", "raw", "load")
    assert flow.runnable() == []
    assert_nothing_to_heal(flow)


def test_a_job_may_be_inserted_before_and_after_its_dataset(upstream: Upstream, flow: Flow) -> None:
    upstream.run("insert into job (datasetid, itemtype, jobid) values ('raw', 'IN', 'clean')")
    upstream.run("insert into dataset (datasetid) values ('raw')")
    upstream.run("insert into dataset (datasetid) values ('tidy')")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    upstream.run("insert into job (datasetid, itemtype, jobid) values ('tidy', 'OUT', 'clean')")
    (taken,) = claim_next(flow.ledger, "clean")
    assert (taken.dataid, taken.outputs) == ("1", ("tidy",))


def test_registering_twice_with_on_conflict_registers_once(upstream: Upstream) -> None:
    for _ in range(2):
        upstream.register("clean", inputs="raw", outputs="tidy")
    assert upstream.rows("select datasetid from dataset order by 1") == [("raw",), ("tidy",)]
    assert upstream.rows("select datasetid, itemtype from job order by 1") == [("raw", "IN"), ("tidy", "OUT")]


def test_a_jobs_environment_items_have_no_dataset(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into job values ('clean', 'threshold', null, '5', now())")
    upstream.run("insert into job (jobid, itemtype, itemvalue) values ('clean', 'mode', 'fast')")
    assert upstream.rows("select itemtype, itemvalue from job where datasetid is null order by 1") == [
        ("mode", "fast"),
        ("threshold", "5"),
    ]
    flow.announce("raw/1")
    assert claim(flow.ledger, "clean", "1").outputs == ("tidy",)


def test_the_last_changes_can_be_listed(upstream: Upstream) -> None:
    for dataid in range(25):
        upstream.run("insert into datastatus values ('raw', 'load', %s, 'OUT', 'READY', now())", str(dataid))
    found = upstream.rows("select * from datastatus where locktype='OUT' order by modified desc limit 20")
    assert [row[2] for row in found] == [str(dataid) for dataid in range(24, 4, -1)]
    assert found[0][:5] == ("raw", "load", "24", "OUT", "READY")


def test_the_datasets_of_a_job_can_be_listed(upstream: Upstream) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("update dataset set hostname='db1', username='etl', encryptedpass='c2VjcmV0' where datasetid='raw'")
    statement = "select d.*, itemtype from dataset d join job on job.datasetid=d.datasetid where job.jobid=%s"
    names = upstream.columns(statement, "clean")
    found = {row[0]: dict(zip(names, row, strict=True)) for row in upstream.rows(statement, "clean")}
    assert names[:7] == UPSTREAM_COLUMNS["dataset"]
    assert {name: row["itemtype"] for name, row in found.items()} == {"raw": "IN", "tidy": "OUT"}
    assert (found["raw"]["hostname"], found["raw"]["encryptedpass"]) == ("db1", "c2VjcmV0")


def test_an_operator_can_lock_the_whole_table_in_a_transaction(flow: Flow, batch_login: str) -> None:
    with upstream_client(batch_login) as client, client.connection.transaction():
        client.run("lock datastatus in access exclusive mode")
        client.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'RUNNING', now())")
    assert flow.status("raw/1") == "RUNNING"


def test_the_upstream_next_chunk_query_finds_what_our_claim_would_take(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw codes", outputs="tidy")
    for dataid in "12345":
        upstream.run("insert into datastatus values ('raw', 'load', %s, 'OUT', 'READY', now())", dataid)
    for dataid in "2345":
        upstream.run("insert into datastatus values ('codes', 'load', %s, 'OUT', 'READY', now())", dataid)
    upstream.run("insert into datastatus values ('tidy', 'clean', '2', 'OUT', 'FAILED', now())")
    upstream.run("insert into datastatus values ('codes', 'clean', '3', 'IN', 'RUNNING', now())")
    upstream.run("insert into datastatus values ('tidy', 'clean', '4', 'OUT', 'RESUBMIT', now())")
    assert upstream.next_chunk("clean") == "4"
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 10)] == ["4", "5"]
    assert upstream.next_chunk("clean") is None


def test_a_chunk_that_was_asked_for_here_is_left_to_upstream_by_a_typed_resubmit(
    upstream: Upstream, flow: Flow
) -> None:
    (clean,) = flow.register("clean: raw -> tidy")
    flow.plan(clean, ["1"])
    flow.announce("raw/1")
    assert flow.status("tidy/1") == "PENDING"
    assert upstream.next_chunk("clean") is None
    upstream.run("update datastatus set status = 'RESUBMIT' where datasetid = 'tidy' and dataid = '1'")
    assert upstream.next_chunk("clean") == "1"


def test_through_the_views_of_the_guide_an_upstream_client_sees_its_own_columns_alone(
    flow: Flow, batch_login: str
) -> None:
    """Its shell evaluates every column of the DataSets of a Job."""
    (recipe,) = re.findall(r"```sql\n(create schema upstream.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    flow.psql.execute(recipe)
    flow.register("clean: raw -> tidy")
    flow.type("grant select on dataflow.dataset to upstream_batch")
    flow.announce("raw/1")
    with psycopg.connect(batch_login, autocommit=True, options="-c search_path=upstream") as connection:
        client = Upstream(connection)
        columns = client.columns(
            "select d.*, itemtype from dataset d join job on job.datasetid = d.datasetid where job.jobid = 'clean'"
        )
        assert columns == [*UPSTREAM_COLUMNS["dataset"], "itemtype"]
        assert client.claim_next("clean") == "1"
        assert flow.status("tidy/1") == "RUNNING"
        client.end("clean", "1")
    assert flow.status("tidy/1") == "READY"
    assert_nothing_to_heal(flow)
    flow.type("drop schema upstream cascade; revoke select on dataflow.dataset from upstream_batch")


# ---- its clients beside ours


def test_an_installation_registered_in_plain_sql_runs_unchanged(upstream: Upstream, flow: Flow) -> None:
    upstream.register("load", outputs="raw")
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    (taken,) = claim_next(flow.ledger, "clean")
    assert [str(needed) for needed in taken.inputs] == ["raw/1"]
    assert taken.manifests == ()
    publish(flow.ledger, taken, NewManifest(location="somewhere/else"))
    assert flow.status("tidy/1") == "READY"
    assert flow.in_rows() == []
    assert_nothing_to_heal(flow)


def test_a_chunk_running_upstream_is_locked_for_us_then_feeds_our_consumer(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.register("report", inputs="tidy", outputs="pages")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    assert upstream.claim_next("clean") == "1"
    assert refusal(flow, "clean", "1") is Code.LOCKED
    assert refusal(flow, "report", "1") is Code.DATA_NOT_READY
    assert claim_next(flow.ledger, "clean") == []
    upstream.end("clean", "1")
    assert refusal(flow, "clean", "1") is Code.LOCKED
    assert [claim.dataid for claim in claim_next(flow.ledger, "report")] == ["1"]
    assert_nothing_to_heal(flow)


def test_a_chunk_we_are_running_is_locked_for_upstream_then_feeds_its_consumer(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.register("report", inputs="tidy", outputs="pages")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    taken = claim(flow.ledger, "clean", "1")
    assert upstream.claim_next("clean") is None
    assert upstream.claim_next("report") is None
    publish(flow.ledger, taken, NewManifest(location="somewhere/else"))
    assert upstream.claim_next("clean") is None
    assert upstream.claim_next("report") == "1"
    upstream.end("report", "1")
    assert flow.status("pages/1") == "READY"
    assert_nothing_to_heal(flow)


@pytest.mark.parametrize("left", ["OUT and IN rows", "the OUT row alone"])
def test_after_an_upstream_crash_a_typed_resubmit_is_enough(upstream: Upstream, flow: Flow, left: str) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    assert upstream.claim_next("clean") == "1"
    if left == "the OUT row alone":
        upstream.run("delete from datastatus where locktype='IN'")
    heal(flow.ledger)
    assert refusal(flow, "clean", "1") is Code.LOCKED, "without a lease a crash cannot be detected"
    upstream.run("update datastatus set status='RESUBMIT' where datasetid='tidy' and dataid='1'")
    assert flow.in_rows() == []
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean")] == ["1"]
    assert_nothing_to_heal(flow)


def left_by_a_crash(flow: Flow, upstream: Upstream) -> None:
    """The OUT row is RESUBMIT already, and the IN row of the client that died is still there."""
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    upstream.run("insert into datastatus values ('tidy', 'clean', '1', 'OUT', 'RESUBMIT', now())")
    upstream.run("insert into datastatus values ('raw', 'clean', '1', 'IN', 'RUNNING', now())")
    assert refusal(flow, "clean", "1") is Code.LOCKED
    assert upstream.next_chunk("clean") is None


CLEARS: dict[str, Callable[[Flow], object]] = {
    "RESUBMIT typed again": lambda flow: flow.type(
        "update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'tidy' and dataid = '1'"
    ),
    "resubmit": lambda flow: resubmit(flow.ledger, [key("tidy/1")], by="ada"),
    "a person's request": lambda flow: request(
        flow.ledger, job("clean: raw -> tidy"), ["1"], by="ada", requested=datetime.now(UTC)
    ),
    "heal": lambda flow: heal(flow.ledger),
}


@pytest.mark.parametrize("clears", CLEARS)
def test_an_in_row_that_a_crash_left_beside_a_resubmit_is_cleared(upstream: Upstream, flow: Flow, clears: str) -> None:
    left_by_a_crash(flow, upstream)
    CLEARS[clears](flow)
    assert flow.in_rows() == []
    assert upstream.next_chunk("clean") == "1"
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean")] == ["1"]
    assert_nothing_to_heal(flow)


def test_an_inserted_resubmit_clears_the_in_rows_of_a_crash(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    upstream.run("insert into datastatus values ('raw', 'clean', '1', 'IN', 'RUNNING', now())")
    upstream.run("insert into datastatus values ('tidy', 'clean', '1', 'OUT', 'RESUBMIT', now())")
    assert flow.in_rows() == []
    assert upstream.next_chunk("clean") == "1"


def test_heal_leaves_the_in_rows_of_a_client_that_works_or_has_no_resubmit(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw codes", outputs="tidy odd")
    for dataid in ("1", "2", "3"):
        upstream.run("insert into datastatus values ('raw', 'load', %s, 'OUT', 'READY', now())", dataid)
        upstream.run("insert into datastatus values ('raw', 'clean', %s, 'IN', 'RUNNING', now())", dataid)
    upstream.run("insert into datastatus values ('tidy', 'clean', '1', 'OUT', 'RUNNING', now())")
    upstream.run("insert into datastatus values ('tidy', 'clean', '2', 'OUT', 'PENDING', now())")
    heal(flow.ledger, rebuild=True)
    assert flow.in_rows() == [("raw", "clean", dataid) for dataid in ("1", "2", "3")]


def test_after_our_failure_a_typed_resubmit_lets_upstream_run_it(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    fail(flow.ledger, claim(flow.ledger, "clean", "1"), "disk full")
    assert upstream.claim_next("clean") is None
    upstream.run("update datastatus set status='RESUBMIT' where datasetid='tidy' and dataid='1'")
    assert upstream.claim_next("clean") == "1"
    upstream.end("clean", "1")
    assert flow.status("tidy/1") == "READY"


def test_upstream_finishing_a_held_chunk_does_not_end_the_hold(upstream: Upstream, flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", raw=Dataset(datasetid=DatasetId("raw")))
    flow.announce("raw/1", "RUNNING", "load")
    hold(flow.ledger, [key("raw/1")], by="ada", reason="audit")
    with pytest.raises(psycopg.Error, match="raw/1 cannot go from HOLD to READY") as refused:
        upstream.run("update datastatus set status='READY' where datasetid='raw' and dataid='1' and locktype='OUT'")
    assert "unhold" in (refused.value.diag.message_hint or "")
    assert claim_next(flow.ledger, "clean", 5) == []


def test_a_resubmit_outlives_the_upstream_client_that_held_the_chunk(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'READY', now())")
    assert upstream.claim_next("clean") == "1"
    flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'tidy'")
    with pytest.raises(psycopg.Error, match="tidy/1 was resubmitted and has not run since") as refused:
        upstream.end("clean", "1")
    assert "claim it again" in (refused.value.diag.message_hint or "")
    assert flow.status("tidy/1") == "RESUBMIT"
    assert upstream.claim_next("clean") == "1"
    upstream.end("clean", "1")
    assert flow.status("tidy/1") == "READY"


def test_a_resubmitted_chunk_of_an_external_dataset_is_made_ready_by_typing_it(upstream: Upstream, flow: Flow) -> None:
    """No client claims it: nobody here produces it."""
    upstream.run("insert into datastatus values ('raw', 'load', '1', 'OUT', 'RESUBMIT', now())")
    upstream.end("load", "1")
    assert flow.status("raw/1") == "READY"


def test_a_resubmitted_chunk_can_be_rolled_back(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'raw'")
    assert rollback(flow.ledger, key("raw/1"), 1, by="ada") == 2
    assert flow.status("raw/1") == "READY"


@pytest.mark.parametrize(
    "typed",
    ["attempt = 9", "retries = 1", "reason = 'typed'", "run_id = 7", "held_status = null, reason = 'known'"],
)
def test_a_typed_change_to_an_unknown_status_is_recorded_too(flow: Flow, typed: str) -> None:
    flow.announce("raw/1", "FAILED", "load")
    flow.type(f"update dataflow.datastatus set {typed}")
    with flow.ledger.statement() as statement:
        first, second = chunks.history(statement, key("raw/1"))
    assert (second.old_status, second.new_status) == (first.new_status, "FAILED")
    flow.type("update dataflow.datastatus set lease_until = null, modified = now()")
    with flow.ledger.statement() as statement:
        assert len(chunks.history(statement, key("raw/1"))) == 2, "a lease is no change"


def test_the_status_table_cannot_be_truncated(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    with pytest.raises(psycopg.Error, match="datastatus cannot be truncated") as refused:
        flow.type("truncate dataflow.datastatus")
    assert refused.value.diag.message_hint == "delete the rows"
    flow.type("delete from dataflow.datastatus")
    assert flow.runnable() == []


def test_a_resubmit_typed_in_sql_revokes_our_live_claim(upstream: Upstream, flow: Flow) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    revoked = claim(flow.ledger, "clean", "1")
    upstream.run("update datastatus set status='RESUBMIT' where datasetid='tidy' and dataid='1'")
    assert flow.in_rows() == []
    manifest = flow.manifest(revoked)
    with pytest.raises(ClaimLost):
        publish(flow.ledger, revoked, manifest)
    (newer,) = claim_next(flow.ledger, "clean")
    assert newer.claim_id > revoked.claim_id
    with pytest.raises(ClaimLost):
        publish(flow.ledger, revoked, manifest)
    with pytest.raises(ClaimLost):
        fail(flow.ledger, revoked, "late")
    flow.publish(newer)
    assert flow.chunk("tidy/1").version == 1


def test_upstream_taking_over_our_running_chunk_by_sql_revokes_our_claim(upstream: Upstream, flow: Flow) -> None:
    """It types READY for an output that our claim is producing."""
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    taken = claim(flow.ledger, "load", "1")
    upstream.end("load", "1")
    with pytest.raises(ClaimLost, match="taken by another client") as lost:
        publish(flow.ledger, taken, flow.manifest(taken))
    assert "Discard the result; see what became of the chunk with: odf chunk show raw 1" in str(lost.value)
    assert "again" not in str(lost.value), "it is READY and does not run again"
    assert flow.chunk("raw/1").manifest_id is None


def test_fifty_resubmitted_chunks_of_a_chain_rerun_producers_first(upstream: Upstream, flow: Flow) -> None:
    dataids = [f"2024-01-{day:02}" for day in range(1, 26)] + [f"2024-02-{day:02}" for day in range(1, 26)]
    load, *_ = flow.register("load: -> raw", "clean: raw -> tidy", "report: tidy -> pages")
    flow.plan(load, dataids)
    for jobid in ("load", "clean", "report"):
        assert run_all(flow, jobid) == dataids

    assert upstream.run("update datastatus set status='RESUBMIT' where locktype='OUT'") == 150
    assert claim_next(flow.ledger, "report", 50) == []
    assert claim_next(flow.ledger, "clean", 50) == []
    first = claim_next(flow.ledger, "load", 25)
    assert [claim.dataid for claim in first] == dataids[:25]
    make(flow, first)
    assert run_all(flow, "clean") == dataids[:25], "only those whose producer has run again"
    assert claim_next(flow.ledger, "report", 50)[0].dataid == dataids[0]
    upstream.run("update datastatus set status='RESUBMIT' where datasetid='pages' and status='RUNNING'")

    while any(run_all(flow, jobid) for jobid in ("report", "clean", "load")):
        pass
    assert {flow.status(f"{name}/{dataid}") for name in ("raw", "tidy", "pages") for dataid in dataids} == {"READY"}
    assert {flow.chunk(f"{name}/{dataid}").version for name in ("raw", "tidy", "pages") for dataid in dataids} == {2}
    made_from = upstream.rows(
        "select distinct inputs -> 0 -> 'version' from data_manifest where version = 2 and jobid <> 'load'"
    )
    assert made_from == [(2,)], "no consumer read the version that was to be replaced"
    assert_nothing_to_heal(flow)


def run_all(flow: Flow, jobid: str) -> list[str]:
    found = claim_next(flow.ledger, jobid, 50)
    make(flow, found)
    return [row.dataid for row in found]


def make(flow: Flow, claims: list[Claim]) -> None:
    made = [
        StagedClaim(
            claim=claim,
            manifests={
                name: NewManifest(location=f"{flow.root}/{name}/claim-{claim.claim_id}") for name in claim.outputs
            },
        )
        for claim in claims
    ]
    assert publish_many(flow.ledger, made).lost == ()


# ---- at the same time


def test_a_job_shared_with_upstream_makes_every_chunk_once(upstream: Upstream, flow: Flow) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    dataids = [str(number) for number in range(100, 140)]
    for dataid in dataids:
        upstream.run("insert into datastatus values ('raw', 'load', %s, 'OUT', 'READY', now())", dataid)
    together = threading.Barrier(3)

    def theirs() -> list[str]:
        made = []
        with upstream_client(flow.url) as client:
            together.wait()
            while (dataid := client.claim_next("clean")) is not None:
                client.end("clean", dataid)
                made.append(dataid)
        return made

    def ours() -> list[str]:
        made: list[str] = []
        together.wait()
        while found := claim_next(flow.ledger, "clean"):
            make(flow, found)
            made.append(found[0].dataid)
        return made

    with ThreadPoolExecutor(3) as threads:
        running = [threads.submit(client) for client in (theirs, ours, ours)]
        made = [dataid for future in running for dataid in future.result(PATIENCE_SECONDS)]
    # A client that finds nothing may have looked while the others had locked the last chunks.
    made += run_all(flow, "clean")
    assert sorted(made) == dataids
    assert {flow.status(f"tidy/{dataid}") for dataid in dataids} == {"READY"}
    assert_nothing_to_heal(flow)


# What upstream or a person does to `tidy/1`, whose claim we have begun.
MEANWHILE = {
    "types HOLD": ["update datastatus set status='HOLD' where datasetid='tidy' and dataid='1'"],
    "inserts its own row": ["insert into datastatus values ('tidy', 'clean', '2', 'OUT', 'RUNNING', now())"],
    "locks the table": [
        "lock datastatus in access exclusive mode",
        "update datastatus set status='RUNNING',locktype='OUT' where dataid='1' and datasetid='tidy' and jobid='clean'",
    ],
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_our_claim_never_makes_a_foreign_statement_the_deadlock_victim(
    upstream: Upstream, flow: Flow, meanwhile: str
) -> None:
    upstream.register("clean", inputs="raw", outputs="tidy")
    for dataid in ("1", "2"):
        upstream.run("insert into datastatus values ('raw', 'load', %s, 'OUT', 'READY', now())", dataid)
    upstream.run("insert into datastatus values ('tidy', 'clean', '1', 'OUT', 'PENDING', now())")
    dataid = "2" if meanwhile == "inserts its own row" else "1"

    def typed() -> None:
        with upstream.connection.transaction():
            for statement in MEANWHILE[meanwhile]:
                upstream.run(statement)

    # Our claim stops between the lock on its runnable row and the rows that it writes; it gives way and retries.
    flow.type("create or replace function public.pause() returns trigger language plpgsql as "
              "'begin perform pg_advisory_xact_lock_shared(42); return new; end'")  # fmt: skip
    flow.type("create trigger a_pause before insert on dataflow.datastatus "
              "for each row when (new.claim_id is not null) execute function public.pause()")  # fmt: skip
    flow.psql.execute("select pg_advisory_lock(42)")
    with ThreadPoolExecutor(2) as threads:
        claiming = threads.submit(claim, flow.ledger, "clean", dataid)
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        while flow.psql.execute(waiting).fetchone() == (0,):
            assert not claiming.done(), claiming.exception()
        typing = threads.submit(typed)
        until_it_waits_or_ends(flow.psql, upstream.connection.info.backend_pid, typing)
        flow.psql.execute("select pg_advisory_unlock(42)")
        typing.result(PATIENCE_SECONDS)
        with suppress(NoGo):  # either may be first
            claiming.result(PATIENCE_SECONDS)
    flow.type("drop trigger a_pause on dataflow.datastatus")
    if meanwhile == "types HOLD":
        assert flow.status("tidy/1") == "HOLD"
    assert_nothing_to_heal(flow)


def until_it_waits_or_ends(psql: psycopg.Connection, pid: int, work: Future[None]) -> None:
    blocked = "select cardinality(pg_blocking_pids(%s)) > 0"
    while not work.done() and psql.execute(blocked, (pid,)).fetchone() != (True,):
        pass
