"""Sessions whose settings and isolation level are not ours, and what they may break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
import sqlalchemy
from psycopg import IsolationLevel, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from opendataflow_dagster.engine.connections import dagster_storage_url
from opendataflow_dagster.ledger.database import Ledger, _server_of, in_database
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.ledger.settings import configured_url
from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.throttle import throttle
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow
from tests.invariants import assert_invariants
from tests.ledger.test_cli_every import HERE, Here
from tests.operator import Odf, after_an_outage, impatient

#: Settings of a role, each of which changes results, plans or time limits. The limits are checked by name, because a
#: short one ends the session before anybody can set another.
HOSTILE = {
    "client_encoding": "latin1",
    "datestyle": "'SQL, DMY'",
    "intervalstyle": "iso_8601",
    "timezone": "'Asia/Kathmandu'",
    "search_path": "shadows, pg_catalog",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "default_transaction_isolation": "serializable",
    "plan_cache_mode": "force_custom_plan",
    "statement_timeout": "'7min'",
    "lock_timeout": "'7min'",
    "idle_in_transaction_session_timeout": "'7min'",
    "idle_session_timeout": "'7min'",
    "transaction_timeout": "'7min'",
}
#: Functions and operators that a search_path puts before those of Postgres.
SHADOWS = """
create schema shadows;
create function shadows.now() returns timestamptz language sql as $$ select timestamptz '1999-01-01' $$;
create function shadows.set_config(text, text, boolean) returns text language sql as $$ select 'nothing' $$;
create function shadows.pg_backend_pid() returns integer language sql as $$ select 0 $$;
create function shadows.count_less(text, text) returns boolean language sql as $$ select false $$;
create operator shadows.= (leftarg = text, rightarg = text, function = shadows.count_less);
create type shadows.text as enum ('nothing')
"""

#: Commands whose answer is the same twice.
LOOKS = (
    *("why", "chunks", "chunk show", "history", "plan"),
    *("dataset list", "dataset show", "dataset export", "job list", "job show", "job export"),
)


def make_hostile(psql: psycopg.Connection) -> None:
    """What comes next, for the login of the tests in this database alone."""
    psql.execute(SHADOWS.encode())
    row = psql.execute("select quote_ident(current_user), quote_ident(current_database())").fetchone()
    assert row is not None
    for name, value in HOSTILE.items():
        psql.execute(f"alter role {row[0]} in database {row[1]} set {name} = {value}".encode())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), HERE)
def test_every_command_works_whatever_the_role_sets(
    month: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, row: Here
) -> None:
    monkeypatch.setenv("ODF_HOME", str(tmp_path / "home"))
    row.first(month, tmp_path)
    looked = [*name.split(), *row.well.split(), "--json"] if name in LOOKS else None
    before = Odf(url=month.url)(*looked).stdout if looked else ""
    make_hostile(month.psql)
    if looked:
        assert Odf(url=month.url)(*looked).stdout == before
    done = Odf(url=month.url)(*name.split(), *row.well.format(tmp=tmp_path).split())
    assert done.exit_code == 0, done.output
    assert row.says in done.stdout


def test_no_setting_of_a_role_reaches_our_sessions(flow: Flow) -> None:
    make_hostile(flow.psql)
    with psycopg.connect(flow.url) as foreign, Ledger(flow.url) as ledger:
        names = [name for name in HOSTILE if name != "transaction_timeout" or foreign.info.server_version >= 170_000]
        with ledger._connection() as connection:
            ours = [connection.values.execute(f"show {name}".encode()).fetchone() for name in names]
        theirs = [foreign.execute(f"show {name}".encode()).fetchone() for name in names]
    same = [name for name, our, their in zip(names, ours, theirs, strict=True) if (our,) == their]
    assert same == []


def test_a_dry_run_works_whatever_the_role_sets(month: Flow) -> None:
    make_hostile(month.psql)
    assert "delays/2024-01-09" in Odf(url=month.url).text("resubmit", "delays", "2024-01-09", "--dry-run")
    assert month.status("delays/2024-01-09") == "FAILED"


def test_typed_statements_do_the_same_whatever_the_session_sets(flow: Flow) -> None:
    load, _, _ = flow.register("load: -> raw", "clean: raw -> tidy", "daily: today -> report")
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    make_hostile(flow.psql)
    with psycopg.connect(flow.url, autocommit=True) as typist:
        # The level is the one thing that a typist must set.
        typist.execute("set default_transaction_isolation = 'read committed'")
        typist.execute("update dataflow.datastatus set status = 'RESUBMIT'")
        typist.execute("insert into dataflow.dataset (datasetid) values ('today') on conflict do nothing")
        typist.execute("select dataflow.open_days()")
        with pytest.raises(psycopg.errors.CheckViolation, match="is not a printable id"):
            typist.execute(b"insert into dataflow.datastatus values ('raw', 'load', E'\\u0007', 'OUT', 'READY', now())")
    assert flow.status("raw/1") == "RESUBMIT"
    assert ("load", "1") in flow.runnable()
    assert_invariants(flow.psql)


# ---- isolation

ABOVE = pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])


@pytest.fixture
def typist(flow: Flow) -> Iterator[psycopg.Connection]:
    with psycopg.connect(flow.url) as connection:
        yield connection


def refused(typist: psycopg.Connection, statement: str, *values: object) -> None:
    """With a sentence that says how to go on; the transaction changes nothing."""
    with pytest.raises(psycopg.errors.InvalidTransactionState, match="the ledger cannot be changed in a") as error:
        typist.execute(statement.encode(), values)
    assert "begin isolation level read committed" in str(error.value.diag.message_hint)
    typist.rollback()


@ABOVE
def test_an_input_that_is_made_ready_from_an_old_snapshot_is_refused_or_wakes_its_consumer(
    flow: Flow, typist: psycopg.Connection, level: IsolationLevel
) -> None:
    flow.register("join: left, right -> both")
    make_ready = "insert into dataflow.datastatus values ('left', 'someone', '1', 'OUT', 'READY', now())"
    typist.isolation_level = level
    typist.execute("select 1")  # its snapshot is from before the other input
    flow.announce("right/1")
    refused(typist, make_ready)
    typist.isolation_level = IsolationLevel.READ_COMMITTED
    typist.execute(make_ready.encode())
    typist.commit()
    assert flow.runnable() == [("join", "1")]


@ABOVE
@pytest.mark.parametrize(
    "statement",
    [
        "update dataflow.datastatus set status = 'RESUBMIT'",
        "delete from dataflow.datastatus",
        "insert into dataflow.datastatus values ('raw', 'clean', 'x', 'IN', 'RUNNING', now())",
        "insert into dataflow.job (jobid, itemtype, datasetid) values ('sum', 'IN', 'raw')",
        "update dataflow.job_policy set ordered = true",
        "update dataflow.dataset set skipped_input = 'passes'",
        "insert into dataflow.chunk_input values ('clean', '1', 'raw', '1')",
        "select dataflow.evaluate(array['clean'], array['1'])",
        "select dataflow.evaluate_again('clean', array['1'])",
        "select dataflow.plan('load', array['x'], null, '{}', '{}', '{}')",
        "select dataflow.drop_versions('raw', 1, null, '0', 'me')",
        "insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location)"
        " values ('raw', '1', 9, 'load', '/')",
    ],
)
def test_whatever_depends_on_what_others_committed_is_refused_above_read_committed(
    flow: Flow, typist: psycopg.Connection, level: IsolationLevel, statement: str
) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1", "2"])
    flow.produce("load", "1")
    typist.isolation_level = level
    refused(typist, statement)


@ABOVE
def test_a_lease_is_renewed_and_rows_are_read_at_any_isolation(
    flow: Flow, typist: psycopg.Connection, level: IsolationLevel
) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1"])
    claim_next(flow.ledger, "load", 1)
    typist.isolation_level = level
    assert typist.execute("select code from dataflow.verdict").fetchall() == [(None,)]
    assert typist.execute("update dataflow.datastatus set lease_until = now() + interval '1 day'").rowcount == 1


@ABOVE
def test_a_limit_holds_whatever_isolation_is_the_default(flow: Flow, level: IsolationLevel) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, [str(number) for number in range(10)])
    throttle(flow.ledger, "load", 1, by="ada")
    name = flow.psql.info.dbname
    flow.type(f"alter database {name} set default_transaction_isolation = '{level.name.lower().replace('_', ' ')}'")
    together = Barrier(4)

    def take(_: int) -> int:
        with Ledger(flow.url) as ledger:
            together.wait(PATIENCE_SECONDS)
            return len(claim_next(ledger, "load", 1))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(take, range(4))) == 1


@ABOVE
def test_a_claim_from_an_old_snapshot_is_refused(flow: Flow, typist: psycopg.Connection, level: IsolationLevel) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1", "2"])
    throttle(flow.ledger, "load", 1, by="ada")
    typist.isolation_level = level
    row = typist.execute("select xmin::text from dataflow.runnable where dataid = '2'").fetchone()
    assert row is not None
    assert len(claim_next(flow.ledger, "load", 1)) == 1
    refused(typist, "select dataflow.claim('load', %s::json, 1, null, false)", json.dumps({"2": row[0]}))


# ---- several hosts


@pytest.fixture(scope="module")
def standby(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the same login that takes no writes, as a standby."""
    embedded = EmbeddedPostgres(tmp_path_factory.mktemp("standby"))
    try:
        own, primary = embedded.start(), conninfo_to_dict(server)
        with psycopg.connect(own, autocommit=True) as admin:
            admin.execute(
                sql.SQL("alter role {} password {}").format(
                    sql.Identifier(str(primary["user"])), sql.Literal(primary["password"])
                )
            )
            admin.execute("alter role current_user set default_transaction_read_only = on")
        yield make_conninfo(own, password=primary["password"], options="-c default_transaction_read_only=off")
    finally:
        embedded.stop()


def several(url: str, *ports: object, query: str = "") -> str:
    parts = conninfo_to_dict(url)
    hosts = ",".join(f"127.0.0.1:{port}" for port in (*ports, parts["port"]))
    return f"postgresql://{parts['user']}:{parts['password']}@{hosts}/{parts['dbname']}{query}"


def test_of_several_hosts_the_one_that_takes_writes_is_used(
    flow: Flow, standby: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(standby, autocommit=True) as admin:
        admin.execute(f"create database {flow.psql.info.dbname}".encode())
    url = several(flow.url, 1, conninfo_to_dict(standby)["port"], query="?target_session_attrs=read-write")
    run = Odf(url=url)
    assert run.json("dataset", "add", "codes")["new"] == ["dataset codes"]
    assert "codes" in run.text("status")
    assert "is running" in run.text("db", "status")
    monkeypatch.setenv("ODF_DATABASE_URL", url)
    assert configured_url() == url
    with psycopg.connect(in_database(url, "postgres")) as connection:
        assert (connection.info.dbname, connection.info.port) == ("postgres", flow.psql.info.port)
    engine = sqlalchemy.create_engine(dagster_storage_url(url))
    with engine.connect() as dagster:
        assert dagster.execute(sqlalchemy.text("show search_path")).scalar_one() == "dagster"
    engine.dispose()


def test_a_server_that_takes_no_writes_is_named_with_the_next_step(flow: Flow) -> None:
    flow.type(f"alter database {flow.psql.info.dbname} set default_transaction_read_only = on")
    message = Odf(url=flow.url).error("dataset", "add", "codes", exit_code=132)
    assert "is read-only for this login" in message
    assert "target_session_attrs=read-write" in message


def test_an_error_names_all_hosts_and_no_password(flow: Flow) -> None:
    parts = conninfo_to_dict(flow.url)
    with impatient():
        message = Odf(url=f"postgresql://odf:s3cret@127.0.0.1:1,127.0.0.1:2/{parts['dbname']}").error(
            "status", exit_code=132
        )
    assert f"127.0.0.1:1,127.0.0.1:2/{parts['dbname']}" in message
    assert "s3cret" not in message


@pytest.mark.parametrize("hosts", ["h1:x,h2", "h1:1,h2:2,h3:y", "h1,h2?port=1,2,3"])
def test_a_wrong_port_among_several_hosts_is_an_error_that_does_not_repeat_the_url(hosts: str) -> None:
    hosts, _, query = hosts.partition("?")
    with pytest.raises(InvalidInput, match="the database URL cannot be read") as error:
        Ledger(f"postgresql://odf:s3cret@{hosts}/db?{query}")
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("postgresql://a:1,b:2/db", "a:1,b:2/db"),
        ("postgresql://a,b:2/db", "a:5432,b:2/db"),
        ("postgresql://a,b/db?port=7", "a:7,b:7/db"),
        ("postgresql:///db?host=a,b", "a:5432,b:5432/db"),
        ("postgresql:///db", "localhost:5432/db"),
    ],
)
def test_every_way_to_write_hosts_is_understood(url: str, server: str) -> None:
    assert _server_of(url) == server


# ---- lost wake-ups


def without_triggers(flow: Flow, statement: str) -> None:
    with flow.psql.transaction():
        flow.type("set local session_replication_role = replica")
        flow.type(statement)


@pytest.mark.parametrize(
    "lost",
    [
        "insert into dataflow.datastatus values ('left', 'someone', '1', 'OUT', 'READY', now())",
        "insert into dataflow.datastatus values ('left', 'someone', '1', 'OUT', 'READY', now()), "
        "('both', 'join', '1', 'OUT', 'PENDING', now())",
    ],
    ids=["not planned", "planned"],
)
def test_heal_finds_a_lost_wake_up_by_itself(flow: Flow, lost: str) -> None:
    flow.register("join: left, right -> both")
    flow.type("update dataflow.dataset set foreign_ready = 'trusted'")
    for dataid in "12":
        flow.announce(f"right/{dataid}")
    heal(flow.ledger)  # evaluates what the change of the DataSets marked
    without_triggers(flow, lost)
    assert flow.runnable() == []
    assert heal(flow.ledger).added == 1
    assert flow.runnable() == [("join", "1")]
    assert [claim.dataid for claim in claim_next(flow.ledger, "join", 5)] == ["1"]
    assert heal(flow.ledger).added == 0


def test_heal_finds_nothing_where_nothing_is_lost(flow: Flow) -> None:
    after_an_outage(flow)
    flow.announce("other/1")
    assert heal(flow.ledger).added == 0
    assert_invariants(flow.psql)


def test_each_heal_looks_at_one_portion_and_all_portions_are_looked_at(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opendataflow_dagster.ledger.healing.PATROL", 3)
    (load,) = flow.register("load: -> raw")
    flow.plan(load, [str(number) for number in range(10)])
    for _ in range(2):  # once around, and around again
        without_triggers(flow, "delete from dataflow.runnable")
        found = [heal(flow.ledger).added for _ in range(4)]
        assert sorted(found) == [1, 3, 3, 3]
        assert len(flow.runnable()) == 10


def test_concurrent_heals_never_look_at_the_same_portion_nor_wait_for_each_other(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    without_triggers(flow, "delete from dataflow.runnable")
    with psycopg.connect(flow.url) as other:
        assert other.execute("select dataflow.patrol(10)").fetchone() == (1,)
        flow.type("set lock_timeout = '10s'")
        assert flow.psql.execute("select dataflow.patrol(10)").fetchone() == (0,)
