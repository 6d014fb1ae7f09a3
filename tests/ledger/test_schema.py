"""The schema: installed once whoever installs it, the same however it came to be, and with three roles that hold."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from opendataflow_dagster.ledger import chunks, definitions, schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.ledger.embedded_cluster import program
from opendataflow_dagster.ledger.schema import SchemaReport
from opendataflow_dagster.ledger.schema_files import wanted as wanted_checksums
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import LedgerConflict, OpenDataFlowError, SchemaMismatch
from opendataflow_dagster.model.ids import DataId, DatasetId, JobId
from opendataflow_dagster.model.job import ALL, ListedChunks
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.model.retention import Retention
from opendataflow_dagster.model.status import Status
from opendataflow_dagster.protocol.claim import claim, claim_many, claim_next
from opendataflow_dagster.protocol.gate import gate, runnable
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, skip, unhold
from opendataflow_dagster.protocol.job_run import begin_run, end_run
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import plan, register
from opendataflow_dagster.protocol.release import abandon, abandon_run, fail
from opendataflow_dagster.protocol.renew import renew
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.sweep import sweep
from tests.databases import temporary_database
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, job, key
from tests.invariants import assert_invariants, snapshot

NAMES = tuple(wanted_checksums())
#: A released file is never edited, because its ledgers would be refused: add a numbered file, and its checksum here.
RELEASED = {
    "0001_baseline": "da33ad2bea11c87b8622b1f53da1ca7193d191b37aa71af15b458aee940673c0",
}
RELEASES = sorted((Path(__file__).parent / "releases").glob("*.sql"))
ROLES = ("reader", "operator", "admin")


def of(url: str, **changes: str) -> str:
    return make_conninfo("", **{**conninfo_to_dict(url), **changes})


# ---- what a schema is


#: Everything in it, each with a name and its definition.
CATALOG = {
    "columns": """
        select c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
               a.attgenerated, a.attcollation::regcollation::text, pg_get_expr(d.adbin, d.adrelid), a.attacl::text
          from pg_class c
          join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
         where c.relnamespace = 'dataflow'::regnamespace""",
    "relations": """
        select c.relname, c.relkind, c.reloptions::text, c.relacl::text, c.relrowsecurity, obj_description(c.oid)
          from pg_class c where c.relnamespace = 'dataflow'::regnamespace""",
    "constraints": """
        select conrelid::regclass::text, conname, pg_get_constraintdef(oid)
          from pg_constraint where connamespace = 'dataflow'::regnamespace""",
    "indexes": "select indexname, indexdef from pg_indexes where schemaname = 'dataflow'",
    "functions": """
        select proname, pg_get_functiondef(oid), proacl::text
          from pg_proc where pronamespace = 'dataflow'::regnamespace""",
    "triggers": """
        select tgname, pg_get_triggerdef(oid), tgenabled
          from pg_trigger where not tgisinternal and tgrelid in
               (select oid from pg_class where relnamespace = 'dataflow'::regnamespace)""",
    "schema": "select nspname, nspacl::text from pg_namespace where nspname = 'dataflow'",
    "arrows": "select old_status, new_status from dataflow.status_transition",
    "migrations": "select name, checksum from dataflow.migration",
}


def catalog(url: str) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(url) as connection:
        return {
            name: sorted(connection.execute(query.encode()).fetchall(), key=repr) for name, query in CATALOG.items()
        }


@pytest.fixture(scope="module")
def wanted(server: str, template: str) -> dict[str, list[tuple[Any, ...]]]:
    """The schema of a fresh installation."""
    found = catalog(of(server, dbname=template))
    assert all(found.values()), "the comparison would compare nothing"
    return found


def install(url: str) -> tuple[str, ...]:
    with Ledger(url) as ledger:
        return schema.install(ledger)


def verify(url: str) -> SchemaReport:
    with Ledger(url) as ledger:
        return schema.verify(ledger)


# ---- installing


def load_release(url: str, dump: Path) -> psycopg.Connection:
    """A ledger as that release left it."""
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(dump.read_bytes())
    connection.execute("reset all")
    return connection


def released_rows(connection: psycopg.Connection) -> dict[str, Any]:
    """What an upgrade must not change."""
    queries = {
        "statuses": "select datasetid, jobid, dataid, locktype, status, claim_id, manifest_id, reason, modified "
        "from dataflow.datastatus order by 1, 2, 3",
        "versions": "select to_jsonb(m) - 'code_version' from dataflow.data_manifest m order by manifest_id",
        "history": "select to_jsonb(e) from dataflow.chunk_event e order by event_id",
        "registry": "select to_jsonb(d) - array['code_version', 'on_new_input', 'expected_by', 'fresh_within'] "
        "from dataflow.dataset d union all select to_jsonb(j) from dataflow.job j order by 1",
        "runnable": "select r.jobid, r.dataid, r.blocked, i from dataflow.runnable r "
        "cross join jsonb_array_elements(r.inputs) i order by 1, 2, 4",
        "verdicts": "select verdict_id, jobid, dataid, claim_id, code, inputs, forced from dataflow.verdict order by 1",
    }
    return {name: connection.execute(query.encode()).fetchall() for name, query in queries.items()}


@pytest.mark.parametrize("dump", RELEASES, ids=lambda dump: dump.stem)
def test_a_ledger_of_every_release_is_upgraded_with_its_rows(
    empty_url: str, wanted: dict[str, list[tuple[Any, ...]]], dump: Path
) -> None:
    with load_release(empty_url, dump) as psql:
        before = released_rows(psql)
        assert {row[4] for row in before["statuses"]} >= set(Status), "the dump has a row in every status"
        assert not verify(empty_url).ok
        applied = install(empty_url)
        assert applied[-1] == "routines"
        assert catalog(empty_url) == wanted
        assert verify(empty_url).ok
        assert released_rows(psql) == before
        assert_invariants(psql)
        stale = psql.execute("select datasetid, dataid from dataflow.stale where is_direct order by 1").fetchall()
        assert stale == [("notes", "2024-01-01"), ("tidy", "2024-01-01")]
        assert install(empty_url) == ()
        with Ledger(empty_url) as ledger, ledger.transaction() as transaction:
            old = chunks.verdicts(transaction, JobId("report"), DataId("2024-01-01"))
        assert "tidy/2024-01-01 is out of date: made from raw/2024-01-01 version 1" in str(old[0])


@pytest.mark.parametrize("dump", RELEASES, ids=lambda dump: dump.stem)
def test_a_ledger_of_a_release_with_overlapping_roots_is_upgraded_and_goes_on(empty_url: str, dump: Path) -> None:
    with load_release(empty_url, dump) as psql:
        psql.execute("update dataflow.dataset set location = '/lake' where datasetid in ('raw', 'tidy')")
        install(empty_url)
        with Ledger(empty_url) as ledger:
            changed = [
                Dataset(datasetid=DatasetId(name), location="/lake", description="changed") for name in ("raw", "tidy")
            ]
            assert register(ledger, changed) == 2
            with ledger.statement() as statement:
                overlaps = definitions.overlapping_roots(statement)
        assert [overlap[:2] for overlap in overlaps] == [("tidy", "raw")]


@pytest.mark.parametrize("dump", RELEASES, ids=lambda dump: dump.stem)
def test_every_verb_on_a_ledger_of_an_older_release_says_how_to_upgrade_it_and_changes_nothing(
    empty_url: str, dump: Path
) -> None:
    with load_release(empty_url, dump) as psql, Ledger(empty_url) as ledger:
        before = snapshot(psql)
        for act in (lambda: claim_next(ledger, "load"), lambda: heal(ledger), lambda: begin_run(ledger, "load")):
            with pytest.raises(SchemaMismatch, match="run: odf schema install"):
                act()
        assert snapshot(psql) == before
        schema.install(ledger)
        assert claim_next(ledger, "load")


def test_a_released_table_file_is_never_edited() -> None:
    checksums = wanted_checksums()
    assert {name: checksums[name] for name in RELEASED} == RELEASED, "add a numbered file in ledger/tables instead"


def test_changed_routines_replace_the_old_ones_whole(url: str, wanted: dict[str, list[tuple[Any, ...]]]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update dataflow.migration set checksum = 'of an older version' where name = 'routines'")
        connection.execute("drop trigger after_update on dataflow.datastatus")
        connection.execute("create function dataflow.of_an_older_version() returns int language sql return 1")
        connection.execute("create view dataflow.of_an_older_version as select dataflow.of_an_older_version()")
    with Ledger(url) as ledger, pytest.raises(SchemaMismatch, match="run: odf schema install"):
        claim_next(ledger, "load")
    assert verify(url).missing == ("routines",)
    assert install(url) == ("routines",)
    assert catalog(url) == wanted


def test_an_installation_that_a_forgotten_transaction_blocks_gives_up_and_says_so(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_PREPARE", schema._PREPARE.replace("'10s'", "'50ms'"))
    with psycopg.connect(url) as forgotten:
        forgotten.execute("update dataflow.migration set checksum = 'x' where name = 'routines'")
        forgotten.commit()
        forgotten.execute("select from dataflow.datastatus")
        with pytest.raises(LedgerConflict, match="lock timeout"):
            install(url)
    assert install(url) == ("routines",)


def test_installing_twice_changes_nothing(url: str) -> None:
    before = catalog(url)
    with psycopg.connect(url, autocommit=True) as connection:
        recorded = connection.execute("select * from dataflow.migration order by name").fetchall()
        assert install(url) == ()
        assert connection.execute("select * from dataflow.migration order by name").fetchall() == recorded
    assert catalog(url) == before
    assert verify(url).ok


def test_five_installers_at_once_install_once(empty_url: str, wanted: dict[str, list[tuple[Any, ...]]]) -> None:
    together = threading.Barrier(5)

    def installer() -> tuple[str, ...]:
        with Ledger(empty_url) as ledger:
            schema.verify(ledger)  # connected
            together.wait()
            return schema.install(ledger)

    with ThreadPoolExecutor(5) as threads:
        applied = [future.result(PATIENCE_SECONDS) for future in [threads.submit(installer) for _ in range(5)]]
    assert sorted(applied) == [(), (), (), (), NAMES]
    assert catalog(empty_url) == wanted


def test_an_installation_that_fails_leaves_nothing_behind(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("create schema dataflow")
        connection.execute("create table dataflow.verdict (mine text)")  # in the way of the baseline
        with pytest.raises(OpenDataFlowError, match="already exists"):
            install(empty_url)
        found = connection.execute("select tablename from pg_tables where schemaname = 'dataflow'").fetchall()
    assert found == [("verdict",)]


def test_the_printed_script_makes_what_install_makes(empty_url: str, wanted: dict[str, list[tuple[Any, ...]]]) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute(schema.script().encode())
    assert verify(empty_url).ok
    assert catalog(empty_url) == wanted
    assert install(empty_url) == ()


def test_the_printed_script_runs_in_psql(empty_url: str, wanted: dict[str, list[tuple[Any, ...]]]) -> None:
    command = [str(program("psql")), empty_url, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
    done = subprocess.run(
        command, input=schema.script(), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert verify(empty_url).ok
    assert catalog(empty_url) == wanted


# ---- verifying


def test_verify_of_an_empty_database_says_what_is_missing_and_changes_nothing(empty_url: str) -> None:
    report = verify(empty_url)
    assert (report.ok, report.applied, report.missing) == (False, (), NAMES)
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("select to_regnamespace('dataflow')").fetchone() == (None,)


def test_verify_of_an_empty_database_knows_the_roles_of_the_server(empty_url: str, template: str) -> None:
    assert template, "its installation has made the roles"
    assert verify(empty_url).missing_roles == ()


@pytest.mark.parametrize(
    ("typed", "word", "found"),
    [
        ("update dataflow.migration set checksum = 'x' where name = '0001_baseline'", "0001_baseline", "changed"),
        ("insert into dataflow.migration (name, checksum) values ('0099_later', 'x')", "0099_later", "unknown"),
    ],
)
def test_a_database_of_an_unknown_version_is_refused_by_the_installer_and_by_every_verb(
    url: str, typed: str, word: str, found: str
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(typed.encode())
    before, report = catalog(url), verify(url)
    assert not report.ok
    assert getattr(report, found) == (word,)
    with pytest.raises(SchemaMismatch, match=rf"{word}.*; (use that version|upgrade opendataflow-dagster)"):
        install(url)
    with Ledger(url) as ledger, pytest.raises(SchemaMismatch):
        claim_next(ledger, "load")
    assert catalog(url) == before


# ---- a server of its own, where no role is yet


@pytest.fixture
def new_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    embedded = EmbeddedPostgres(tmp_path_factory.mktemp("roles"))
    try:
        yield embedded.start()
    finally:
        embedded.stop()


def test_who_may_make_no_roles_installs_without_them_and_gets_the_grants_when_they_are_there(new_server: str) -> None:
    with psycopg.connect(new_server, autocommit=True) as admin:
        admin.execute("create role plain login password 'secret'")
        admin.execute("create database plain owner plain")
        url = of(new_server, dbname="plain", user="plain", password="secret")
        assert install(url) == NAMES
        report = verify(url)
        assert report.ok
        assert report.missing_roles == ("dataflow_reader", "dataflow_operator", "dataflow_admin")
        with Ledger(url) as ledger:
            register(ledger, [], [])
            heal(ledger, rebuild=True)

        # What the notice of the installation asks for.
        for role in ROLES:
            admin.execute(f"create role dataflow_{role} nologin".encode())
        try:
            install(url)
            assert verify(url).missing_roles == ()
            with psycopg.connect(url) as connection:
                granted = "select has_table_privilege('dataflow_operator', 'dataflow.datastatus', 'delete')"
                assert connection.execute(granted).fetchone() == (True,)
        finally:
            admin.execute("drop database plain with (force)")
            admin.execute("drop role plain, dataflow_reader, dataflow_operator, dataflow_admin")


def test_installers_of_several_databases_make_the_roles_of_a_new_server_once(new_server: str) -> None:
    together = threading.Barrier(4)

    def installer(url: str) -> tuple[str, ...]:
        with Ledger(url) as ledger:
            schema.verify(ledger)  # connected
            together.wait()
            return schema.install(ledger)

    with psycopg.connect(new_server, autocommit=True) as admin:
        for number in range(4):
            admin.execute(f"create database many_{number}".encode())
    urls = [of(new_server, dbname=f"many_{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        applied = [future.result(PATIENCE_SECONDS) for future in [threads.submit(installer, url) for url in urls]]
    assert applied == [NAMES] * 4
    reports = [verify(url) for url in urls]
    assert all(report.ok and report.missing_roles == () for report in reports)
    assert catalog(urls[0]) == catalog(urls[1]) == catalog(urls[2]) == catalog(urls[3])


# ---- roles


@pytest.fixture(scope="module")
def roles_database(server: str, template: str) -> Iterator[str]:
    yield from temporary_database(server, template)


@pytest.fixture(scope="module")
def logins(roles_database: str) -> Iterator[dict[str, str]]:
    """The url of a login for each role, and of one with none."""
    with psycopg.connect(roles_database, autocommit=True) as connection:
        for role in ROLES:
            connection.execute(f"create role a_{role} login password 'secret' in role dataflow_{role}".encode())
        connection.execute("create role a_stranger login password 'secret'")
        try:
            yield {role: of(roles_database, user=f"a_{role}", password="secret") for role in (*ROLES, "stranger")}
        finally:
            for role in (*ROLES, "stranger"):
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", (f"a_{role}",)
                )
                connection.execute(f"drop role a_{role}".encode())


@pytest.fixture
def tables(roles_database: str) -> list[str]:
    with psycopg.connect(roles_database) as connection:
        found = connection.execute(
            "select tablename from pg_tables where schemaname = 'dataflow' order by 1"
        ).fetchall()
    return [name for (name,) in found]


def refused(connection: psycopg.Connection, statement: str) -> bool:
    """Refused for lack of rights, which are asked before anything else; what is allowed is undone."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement.encode())
    except psycopg.Error as error:
        return isinstance(error, psycopg.errors.InsufficientPrivilege)
    return False


def writes(table: str) -> list[str]:
    """One of each kind, which the rights alone decide about."""
    return [
        f"insert into dataflow.{table} default values",
        f"update dataflow.{table} set {COLUMN[table]} = {COLUMN[table]} where false",
        f"delete from dataflow.{table} where false",
    ]


COLUMN = {
    "chunk_event": "reason",
    "chunk_input": "dataid",
    "data_manifest": "location",
    "dataset": "owner",
    "datastatus": "status",
    "job": "itemvalue",
    "job_control": "reason",
    "job_event": "reason",
    "job_policy": "retry_on",
    "job_run": "runner",
    "migration": "checksum",
    "registry_event": "reason",
    "reported": "orchestrator",
    "runnable": "blocked",
    "status_transition": "old_status",
    "failure": "traceback",
    "patrol": "dataid",
    "stale": "by",
    "turn": "sort_key",
    "unsettled": "after",
    "verdict": "problems",
    "version_sweep": "by",
}


def test_every_table_is_in_the_tests_of_the_roles(tables: list[str]) -> None:
    assert sorted(COLUMN) == tables


def test_a_stranger_sees_nothing(logins: dict[str, str], tables: list[str]) -> None:
    with psycopg.connect(logins["stranger"], autocommit=True) as connection:
        allowed = [table for table in tables if not refused(connection, f"select from dataflow.{table}")]
    assert allowed == []


def test_a_reader_reads_everything_and_writes_nothing(logins: dict[str, str], tables: list[str]) -> None:
    with psycopg.connect(logins["reader"], autocommit=True) as connection:
        assert [table for table in tables if refused(connection, f"select from dataflow.{table}")] == []
        allowed = [statement for table in tables for statement in writes(table) if not refused(connection, statement)]
        assert allowed == []
        assert refused(connection, "select nextval('dataflow.claim_id')")


def test_a_reader_cannot_write_through_a_function_either(logins: dict[str, str], roles_database: str) -> None:
    with psycopg.connect(roles_database) as connection:
        found = connection.execute(
            "select oid::regprocedure::text from pg_proc"
            " where pronamespace = 'dataflow'::regnamespace and prosecdef and prorettype <> 'trigger'::regtype"
            "   and has_function_privilege('a_reader', oid, 'execute') order by 1"
        ).fetchall()
    # They act with the rights of the owner, and only name the sessions that are in the way.
    assert [name for (name,) in found] == ["dataflow.idle_writers()", "dataflow.refuse_to_wait(text,integer[])"]
    with psycopg.connect(logins["reader"], autocommit=True) as connection:
        assert refused(connection, "select dataflow.settle(null, 1, array['', ''])")


def test_a_reader_sees_every_column_of_a_dataset_but_its_password(logins: dict[str, str], roles_database: str) -> None:
    with psycopg.connect(roles_database) as connection:
        hidden = connection.execute(
            "select attname::text from pg_attribute where attrelid = 'dataflow.dataset'::regclass and attnum > 0"
            "   and not has_column_privilege('a_reader', attrelid, attnum, 'select')"
        ).fetchall()
    assert hidden == [("encryptedpass",)]
    with psycopg.connect(logins["reader"], autocommit=True) as connection:
        for statement in (
            "select encryptedpass from dataflow.dataset",
            "select * from dataflow.dataset",
            "select d from dataflow.dataset d",
            "select to_jsonb(d) from dataflow.dataset d",
            "select 1 from dataflow.dataset where encryptedpass like 'a%'",
        ):
            assert refused(connection, statement), statement


def test_a_reader_can_gate_nothing_but_can_see_history_verdicts_and_the_schemas_state(
    flow_as: Callable[[str], Flow],
) -> None:
    reader = flow_as("reader")
    assert schema.verify(reader.ledger).ok
    with reader.ledger.statement() as statement:
        assert chunks.history(statement, key("raw/1"))
        assert chunks.verdicts(statement, JobId("load"), key("raw/1").dataid) == []
    assert runnable(reader.ledger, "load", 10) == ["1", "2", "3"]
    with pytest.raises(OpenDataFlowError, match="permission denied"):
        claim_next(reader.ledger, "load")


# ---- an operator

LISTED = job("days: hours -> dates", hours=ListedChunks(lambda _: ["1"]))
LOAD = job("load: -> raw")


@pytest.fixture
def flow_as(roles_database: str, logins: dict[str, str], tmp_path: Path) -> Iterator[Callable[[str], Flow]]:
    """A flow of each role, on a database with some jobs and planned chunks, which the owner has made."""
    opened: list[Ledger | psycopg.Connection] = []

    def as_role(role: str) -> Flow:
        url = logins.get(role, roles_database)
        ledger, psql = Ledger(url, actor=role), psycopg.connect(url, autocommit=True)
        opened.extend((ledger, psql))
        return Flow(ledger=ledger, url=url, psql=psql, root=tmp_path)

    owner = as_role("owner")
    names = connection_names(owner.psql)
    owner.type("set session_replication_role = replica")
    for name in names:
        owner.type(f"delete from dataflow.{name}")
    owner.type("set session_replication_role = origin")
    today = Dataset(datasetid=DatasetId("today"))
    owner.register(
        LOAD, "clean: raw -> tidy", LISTED, job("total: raw -> sums", raw=ALL), "daily: today -> reports", today=today
    )
    owner.plan(LOAD, ["1", "2", "3"])
    try:
        yield as_role
    finally:
        for ledger in opened:
            ledger.close()


def connection_names(psql: psycopg.Connection) -> list[str]:
    found = psql.execute(
        "select tablename from pg_tables"
        " where schemaname = 'dataflow' and tablename not in ('migration', 'status_transition')"
    )
    return [str(row[0]) for row in found]


def one_claim(flow: Flow) -> Claim:
    return claim(flow.ledger, "load", "1")


def manifest(flow: Flow) -> NewManifest:
    return NewManifest(location=f"{flow.root}/raw/x")


def failed(flow: Flow) -> bool:
    fail(flow.ledger, one_claim(flow), "disk full")
    return flow.status("raw/1") == "FAILED"


def abandoned(flow: Flow) -> bool:
    abandon(flow.ledger, [one_claim(flow)], "given up")
    return flow.status("raw/1") == "RESUBMIT"


def run_from_begin_to_end(flow: Flow) -> bool:
    end_run(flow.ledger, begin_run(flow.ledger, "load"))
    return True


def announced(flow: Flow) -> bool:
    flow.announce("raw/9")
    return flow.status("raw/9") == "READY"


def swept(flow: Flow) -> bool:
    """An old version and a failed attempt."""
    folders = []
    for _ in range(2):
        taken = one_claim(flow)
        folders.append(flow.root / "raw" / "1" / f"{taken.claim_id}-raw")
        folders[-1].mkdir(parents=True)
        publish(flow.ledger, taken, NewManifest(location=str(folders[-1])))
        resubmit(flow.ledger, [key("raw/1")], by="ada")
    taken = one_claim(flow)
    folders.append(flow.root / "raw" / "1" / f"{taken.claim_id}-raw")
    folders[-1].mkdir()
    fail(flow.ledger, taken, "disk full")
    now = timedelta(0)
    sweep(flow.ledger, "raw", Retention(versions=1, failed=now, grace=now), by="ada")
    return [folder.exists() for folder in folders] == [False, True, False]


#: Every verb of a job, with what it gives.
VERBS: dict[str, Callable[[Flow], object]] = {
    "plan": lambda flow: plan(flow.ledger, LOAD, ["4"]),
    "plan with listed inputs": lambda flow: plan(flow.ledger, LISTED, ["4"]),
    "gate": lambda flow: gate(flow.ledger, "clean", ["1"]),
    "runnable": lambda flow: runnable(flow.ledger, "load", 10),
    "claim": one_claim,
    "claim_next": lambda flow: claim_next(flow.ledger, "load", 2),
    "claim_next that finds nothing": lambda flow: claim_next(flow.ledger, "clean") == [],
    "claim_next that turns the day": lambda flow: claim_next(flow.ledger, "daily"),
    "claim_many with a refusal": lambda flow: claim_many(flow.ledger, "clean", ["1"]).refused,
    "renew": lambda flow: renew(flow.ledger, [one_claim(flow)]),
    "publish": lambda flow: publish(flow.ledger, one_claim(flow), manifest(flow)),
    "publish and consume": lambda flow: (
        publish(flow.ledger, one_claim(flow), manifest(flow)),
        claim_next(flow.ledger, "clean"),
    ),
    "fail": failed,
    "abandon": abandoned,
    "begin and end a run": run_from_begin_to_end,
    "abandon a run": lambda flow: abandon_run(flow.ledger, begin_run(flow.ledger, "load"), "dead") == 0,
    "hold": lambda flow: hold(flow.ledger, [key("raw/1")], by="ada"),
    "hold before it is there": lambda flow: hold(flow.ledger, [key("raw/9")], by="ada"),
    "unhold": lambda flow: (
        hold(flow.ledger, [key("raw/1")], by="ada") and unhold(flow.ledger, [key("raw/1")], by="ada")
    ),
    "skip": lambda flow: skip(flow.ledger, [key("raw/1")], by="ada"),
    "resubmit": lambda flow: resubmit(flow.ledger, [key("raw/1")], by="ada").chunks,
    "resubmit downstream": lambda flow: resubmit(flow.ledger, [key("raw/1")], by="ada", with_downstream=True).chunks,
    "sweep": swept,
    "heal": lambda flow: heal(flow.ledger),
    "heal and rebuild": lambda flow: heal(flow.ledger, rebuild=True),
    "typed RESUBMIT": lambda flow: flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = '1'"),
    "typed announcement": announced,
    "typed delete": lambda flow: flow.type("delete from dataflow.datastatus where dataid = '1'"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_an_operator_can_run_every_verb_of_a_job(flow_as: Callable[[str], Flow], verb: str) -> None:
    assert VERBS[verb](flow_as("operator"))


#: Whatever a role has been given in the schema.
RIGHTS = """
    select c.relname || ' ' || p.name
      from pg_class c, unnest(array['select', 'insert', 'update', 'delete']) as p(name)
     where c.relnamespace = 'dataflow'::regnamespace and c.relkind = 'r'
       and has_table_privilege(%(role)s, c.oid, p.name)
    union all
    select c.relname || ' usage'
      from pg_class c
     where c.relnamespace = 'dataflow'::regnamespace
       and case c.relkind when 'S' then has_sequence_privilege(%(role)s, c.oid, 'usage') end
    union all
    select f.oid::regprocedure::text
      from pg_proc f
     where f.pronamespace = 'dataflow'::regnamespace and has_function_privilege(%(role)s, f.oid, 'execute')
"""


@pytest.mark.parametrize(("less", "more"), [("reader", "operator"), ("operator", "admin")])
def test_who_has_more_to_say_may_do_all_that_the_others_may(roles_database: str, less: str, more: str) -> None:
    with psycopg.connect(roles_database) as connection:
        rights = [set(connection.execute(RIGHTS, {"role": f"dataflow_{role}"}).fetchall()) for role in (less, more)]
    assert rights[0] - rights[1] == set()
    assert rights[1] - rights[0]


def test_what_an_operator_does_is_in_the_history_with_the_login(flow_as: Callable[[str], Flow]) -> None:
    operator = flow_as("operator")
    one_claim(operator)
    operator.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = '1'")
    with operator.ledger.statement() as statement:
        events = chunks.history(statement, key("raw/1"))[1:]
    assert [(event.new_status, event.login, event.actor) for event in events] == [
        ("RUNNING", "a_operator", "operator"),
        ("RESUBMIT", "a_operator", None),
    ]


APPEND_ONLY = ("chunk_event", "data_manifest", "registry_event", "verdict")
REGISTRY = ("dataset", "job", "job_policy")
NOBODYS = ("migration", "status_transition")


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_nobody_changes_what_is_append_only_nor_the_schemas_own_tables(logins: dict[str, str], role: str) -> None:
    with psycopg.connect(logins[role], autocommit=True) as connection:
        changes = [statement for table in APPEND_ONLY for statement in writes(table)[1:]]
        changes += [statement for table in NOBODYS for statement in writes(table)]
        changes += [
            "insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, login) values ('', '', '', '', '')",
            "insert into dataflow.registry_event (relation, name, login) values ('', '', '')",
        ]
        changes += [f"truncate dataflow.{table}" for table in COLUMN]
        changes += ["alter table dataflow.datastatus disable trigger after_update", "drop table dataflow.verdict"]
        changes += ["set session_replication_role = replica"]
        assert [statement for statement in changes if not refused(connection, statement)] == []


def test_an_operator_does_not_change_the_registry(logins: dict[str, str], flow_as: Callable[[str], Flow]) -> None:
    with psycopg.connect(logins["operator"], autocommit=True) as connection:
        assert [
            statement for table in REGISTRY for statement in writes(table) if not refused(connection, statement)
        ] == []
    with pytest.raises(OpenDataFlowError, match="permission denied"):
        flow_as("operator").register("more: -> else")


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_answers_and_the_runnable_set_are_written_by_functions_alone(logins: dict[str, str], role: str) -> None:
    with psycopg.connect(logins[role], autocommit=True) as connection:
        statements = [statement for table in ("runnable", "verdict") for statement in writes(table)]
        assert [statement for statement in statements if not refused(connection, statement)] == []


def test_an_admin_can_register_and_plan(flow_as: Callable[[str], Flow]) -> None:
    admin = flow_as("admin")
    (more,) = admin.register("more: raw -> else")
    admin.plan(more, ["1"])
    assert admin.status("else/1") == "PENDING"
    admin.type("insert into dataflow.dataset (datasetid) values ('typed')")
    admin.type("insert into dataflow.job (jobid, itemtype, datasetid) values ('typing', 'OUT', 'typed')")
    admin.type("delete from dataflow.job where jobid = 'typing'")
    assert DatasetId("else") in one_claim_of(admin, "more", "1")


def one_claim_of(flow: Flow, jobid: str, dataid: str) -> tuple[DatasetId, ...]:
    publish(flow.ledger, claim(flow.ledger, "load", dataid), manifest(flow))
    return claim(flow.ledger, jobid, dataid).outputs


@pytest.mark.parametrize("role", ROLES)
def test_nobody_but_the_owner_installs(logins: dict[str, str], role: str) -> None:
    with pytest.raises(OpenDataFlowError, match="permission denied"):
        install(logins[role])
