"""A hostile reader, operator and admin, each with a real login and plain SQL: refused or harmless, and recorded.

Each test is an attack. What a role may do is in test_grants.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import ClaimLost, NoGo
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, unhold
from opendataflow_dagster.protocol.publish import publish
from tests.databases import empty, temporary_database
from tests.factories import Flow, key
from tests.invariants import assert_invariants, snapshot
from tests.logins import ROLES, logins_of

Attacker = Callable[[str], psycopg.Connection]
EVERYONE = ("stranger", *ROLES)


@pytest.fixture(scope="module")
def database(server: str, template: str) -> Iterator[str]:
    yield from temporary_database(server, template)


@pytest.fixture(scope="module")
def logins(database: str) -> Iterator[dict[str, str]]:
    with logins_of(database, "hostile") as urls:
        yield urls


@pytest.fixture
def flow(database: str, tmp_path: Path) -> Iterator[Flow]:
    """raw/1 is READY, raw/2 is on HOLD, and page/3 is NOT_VALIDATED. Made by the owner."""
    with Ledger(database, actor="owner") as ledger, psycopg.connect(database, autocommit=True) as psql:
        empty(psql)
        flow = Flow(ledger=ledger, url=database, psql=psql, root=tmp_path)
        page = Dataset(datasetid=DatasetId("page"), foreign_ready="refused")
        flow.register("load: -> raw", "clean: raw -> tidy", "print: page -> book", page=page)
        flow.type("update dataflow.dataset set encryptedpass = 'odf1.ciphertext' where datasetid = 'raw'")
        flow.produce("load", "1")
        hold(ledger, [key("raw/2")], by="owner")
        flow.announce("page/3")
        yield flow
        assert_invariants(psql)


@pytest.fixture
def attacker(flow: Flow, logins: dict[str, str]) -> Iterator[Attacker]:
    opened: list[psycopg.Connection] = []

    def connect(role: str) -> psycopg.Connection:
        opened.append(psycopg.connect(logins[role], autocommit=True))
        return opened[-1]

    try:
        yield connect
    finally:
        for connection in opened:
            connection.close()


def attempt(connection: psycopg.Connection, statement: str) -> str | None:
    """The error, or None where the statement went through."""
    try:
        connection.execute(statement.encode())
    except psycopg.Error as error:
        return f"{error.sqlstate} {error}"
    return None


# ---- our functions as triggers of a foreign table

TRIGGER_FUNCTIONS = """
    select p.proname::text from pg_proc p
     where p.pronamespace = 'dataflow'::regnamespace and p.prorettype = 'trigger'::regtype order by 1
"""


@pytest.mark.parametrize("role", EVERYONE)
def test_nobody_attaches_a_function_of_ours_to_a_table_of_their_own(flow: Flow, attacker: Attacker, role: str) -> None:
    names = [name for (name,) in flow.psql.execute(TRIGGER_FUNCTIONS)]
    assert "record_definition" in names
    psql = attacker(role)
    psql.execute("create temporary table mine (datasetid text, jobid text, encryptedpass text)")
    for name in names:
        made = f"create trigger t before insert on mine for each row execute function dataflow.{name}('datasetid')"
        assert "permission denied" in str(attempt(psql, made)), name


def test_a_function_that_is_attached_elsewhere_refuses_before_it_reads_a_row(flow: Flow) -> None:
    """Were a grant ever given by mistake, the function would still not act on rows of another table."""
    columns = "(like dataflow.datastatus including defaults)"
    flow.type(f"create temporary table mine {columns}")
    before = snapshot(flow.psql)
    for (name,) in flow.psql.execute(TRIGGER_FUNCTIONS).fetchall():
        if name in HARMLESS_ELSEWHERE:
            continue
        for event, tables in (("insert", "new table as new_rows"), ("delete", "old table as old_rows")):
            for what in (f"referencing {tables} for each statement", "for each row"):
                flow.type("delete from mine")
                if event == "delete":
                    flow.type("insert into mine values ('raw', 'load', '77', 'OUT', 'READY')")
                flow.type(
                    f"create trigger t after {event} on mine {what} execute function dataflow.{name}('datasetid')"
                )
                change = "insert into mine values ('raw', 'load', '77', 'OUT', 'READY')"
                refused = attempt(flow.psql, change if event == "insert" else "delete from mine")
                flow.type("drop trigger t on mine")
                assert "is a trigger of" in str(refused), (name, event, what)
    flow.type("drop table mine")
    assert snapshot(flow.psql) == before


#: They change or refuse the row at hand and touch no other, with the rights of whoever writes.
HARMLESS_ELSEWHERE = {"guard_row", "keep_modified", "refuse_change", "refuse_swept", "refuse_truncate"}


def test_every_function_with_the_owners_rights_has_a_safe_search_path(flow: Flow) -> None:
    found = flow.psql.execute(
        "select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'dataflow'::regnamespace"
        " and (p.prosecdef or p.prorettype = 'trigger'::regtype)"
        " and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false) order by 1"
    ).fetchall()
    assert found == []


# ---- leaving HOLD

SET, HELD = "update dataflow.datastatus set", "where dataid = '2'"
WAYS_OUT_OF_HOLD = {
    "an unknown word": f"{SET} status = 'finished' {HELD}",
    "another case": f"{SET} status = 'ready' {HELD}",
    "a null": f"{SET} status = null {HELD}",
    "READY, which it never was": f"{SET} status = 'READY' {HELD}",
    "another dataid": f"{SET} dataid = '22' {HELD}",
    "another DataSet": f"{SET} datasetid = 'old' {HELD}",
    "another Job": f"{SET} jobid = 'other' {HELD}",
    "another locktype": f"{SET} locktype = 'IN' {HELD}",
    "another locktype and status": f"{SET} locktype = 'IN', status = 'RUNNING' {HELD}",
    "an edited memory": f"{SET} held_status = 'READY' {HELD}",
    "an edited memory and its status": f"{SET} held_status = 'READY', status = 'READY' {HELD}",
    "a claim": f"{SET} status = 'RUNNING', claim_id = 99, lease_until = 'infinity' {HELD}",
    "a deletion": f"delete from dataflow.datastatus {HELD}",
    "an upsert": "insert into dataflow.datastatus values ('raw', 'load', '2', 'OUT', 'READY')"
    " on conflict (datasetid, jobid, dataid) do update set status = excluded.status",
}


@pytest.mark.parametrize("role", ["operator", "admin", "owner"])
def test_a_hold_ends_only_by_the_statuses_that_the_state_machine_allows(
    flow: Flow, attacker: Attacker, role: str
) -> None:
    psql = flow.psql if role == "owner" else attacker(role)
    before = snapshot(flow.psql)
    for way, typed in WAYS_OUT_OF_HOLD.items():
        assert str(attempt(psql, typed)).startswith(("DF001", "42501")), way
    assert snapshot(flow.psql) == before
    assert flow.status("raw/2") == "HOLD"


def test_an_operator_ends_a_hold_by_typing_what_the_state_machine_allows(flow: Flow, attacker: Attacker) -> None:
    psql = attacker("operator")
    for word in ("RESUBMIT", "HOLD", "SKIPPED", "HOLD", "SKIPPED"):
        psql.execute(f"{SET} status = '{word}' {HELD}".encode())
        assert flow.status("raw/2") == word
        assert last_event(flow, "2")[1:] == (word, "hostile_operator")


def test_a_foreign_word_on_a_chunk_that_is_not_on_hold_locks_it(flow: Flow, attacker: Attacker) -> None:
    typed = "update dataflow.datastatus set status = 'finished' where datasetid = 'raw' and dataid = '1'"
    attacker("operator").execute(typed.encode())
    assert last_event(flow, "1") == ("READY", "finished", "hostile_operator")
    with pytest.raises(NoGo, match=r"LOCKED|DATA_NOT_READY"):
        claim(flow.ledger, "clean", "1")


def last_event(flow: Flow, dataid: str) -> tuple[object, ...]:
    found = flow.psql.execute(
        "select old_status, new_status, login from dataflow.chunk_event where datasetid = 'raw' and dataid = %s"
        " order by event_id desc limit 1",
        (dataid,),
    ).fetchone()
    assert found is not None
    return found


def test_a_claim_does_not_follow_a_row_to_another_chunk(flow: Flow) -> None:
    """Its answers were about the first one. Operators cannot change a key; a client that upstream left may."""
    flow.announce("page/8", jobid="other")
    claimed = claim(flow.ledger, "load", "9")
    flow.type("update dataflow.datastatus set dataid = '10' where claim_id = %s", claimed.claim_id)
    with pytest.raises(ClaimLost):
        publish(flow.ledger, claimed, NewManifest(location=f"{flow.root}/raw/x"))
    assert flow.chunk("raw/10").claim_id is None
    flow.type("delete from dataflow.datastatus where dataid = '10'")


# ---- forged rows, and columns that belong to the functions

FORGED = {
    "a version": "insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location)"
    " values ('page', '3', 77, 'someone', '/tmp')",
    "an answer": "insert into dataflow.verdict (jobid, dataid, claim_id) values ('print', '3', 77)",
    "a candidate": "insert into dataflow.runnable (jobid, dataid, sort_key) values ('print', '4', '4')",
    "a cleared no": "update dataflow.runnable set blocked = null",
    "an event": "insert into dataflow.chunk_event (datasetid, jobid, dataid, locktype, login)"
    " values ('raw', 'load', '1', 'OUT', 'ada')",
    "a change of the registry": "insert into dataflow.registry_event (relation, name, login) values ('job', 'x', '')",
    "a change of a limit": "insert into dataflow.job_event (jobid, login) values ('load', 'ada')",
    "a run": "insert into dataflow.job_run (jobid, login) values ('load', 'ada')",
    "an end of a run": "update dataflow.job_run set outcome = 'ENDED', ended = now()",
    "a run that never was": "delete from dataflow.job_run",
    "an input": "insert into dataflow.chunk_input values ('clean', '1', 'raw', '')",
    "a sweep": "insert into dataflow.version_sweep (manifest_id) select manifest_id from dataflow.data_manifest",
    "a transition": "insert into dataflow.status_transition values ('HOLD', 'RUNNING')",
    "a release": "update dataflow.migration set checksum = 'x'",
    "a claim": "update dataflow.datastatus set claim_id = 77",
    "a lease": "update dataflow.datastatus set lease_until = 'infinity'",
    "a current version": "update dataflow.datastatus set manifest_id = 1",
    "an attempt": "update dataflow.datastatus set attempt = 0",
    "a run of a chunk": "update dataflow.datastatus set run_id = 77",
    "a key": "update dataflow.datastatus set dataid = '77' where dataid = '1'",
    "a claimed row": "insert into dataflow.datastatus"
    " (datasetid, jobid, dataid, locktype, status, claim_id, lease_until)"
    " values ('raw', 'load', '77', 'OUT', 'RUNNING', 77, 'infinity')",
    "a version of another": "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, manifest_id)"
    " values ('raw', 'load', '77', 'OUT', 'READY', 1)",
    "a limit of another Job": "update dataflow.job_control set jobid = 'load'",
    "a number": "select nextval('dataflow.claim_id')",
    "a number set back": "select setval('dataflow.claim_id', 1)",
    "a trigger": "create trigger t after update on dataflow.datastatus for each row"
    " execute function suppress_redundant_updates_trigger()",
    "a rule": "create rule r as on update to dataflow.datastatus do instead nothing",
    "no trigger": "alter table dataflow.datastatus disable trigger all",
    "another function": "create or replace function dataflow.is_name(name text) returns boolean"
    " language sql return true",
    "another login": "set session authorization dataflow_admin",
    "replica": "set session_replication_role = replica",
}


@pytest.mark.parametrize("role", ROLES)
def test_nobody_but_the_functions_writes_what_they_keep(flow: Flow, attacker: Attacker, role: str) -> None:
    psql, before = attacker(role), snapshot(flow.psql)
    for forged, typed in FORGED.items():
        assert str(attempt(psql, typed)).startswith("42501"), forged
    assert snapshot(flow.psql) == before


@pytest.mark.parametrize("role", EVERYONE)
def test_nobody_empties_a_table(flow: Flow, attacker: Attacker, role: str) -> None:
    psql = attacker(role)
    for (name,) in flow.psql.execute("select tablename from pg_tables where schemaname = 'dataflow'").fetchall():
        for command in ("truncate", "drop table", "alter table dataflow.job,"):
            assert attempt(psql, f"{command} dataflow.{name}") is not None


@pytest.mark.parametrize("role", EVERYONE)
def test_a_direct_call_of_any_function_without_arguments_changes_nothing(
    flow: Flow, attacker: Attacker, role: str
) -> None:
    psql, before = attacker(role), snapshot(flow.psql)
    # How far heal's patrol has come, which it notes.
    del before["patrol"]
    calls = flow.psql.execute(
        "select format('select dataflow.%I(%s)', p.proname,"
        "              (select string_agg('null::' || format_type(a.type, null), ', ' order by a.place)"
        "                 from unnest(p.proargtypes) with ordinality as a(type, place)))"
        "  from pg_proc p where p.pronamespace = 'dataflow'::regnamespace and p.prorettype <> 'trigger'::regtype"
    ).fetchall()
    assert len(calls) > 60
    for (call,) in calls:
        attempt(psql, call)
    after = snapshot(flow.psql)
    assert {table: after[table] for table in before} == before


# ---- a chunk that was answered NOT_VALIDATED

NONSENSE = '[{"question": "NONSENSE"}]'
CLAIM = (
    "select dataflow.claim('print', json_build_object('3', r.xmin::text), 1, null, {named})"
    " from dataflow.runnable r where r.jobid = 'print'"
)
TRICKS = {
    "asking again": "select dataflow.evaluate(array['print'], array['3'])",
    "an answer that says nothing": "select dataflow.record('print', array['3'], array[null], true)",
    "an empty text": "select dataflow.record('print', array['3'], array[''], true)",
    "nonsense": f"select dataflow.record('print', array['3'], array['{NONSENSE}'], true)",
    "rebuilding": "select dataflow.evaluate_again('print', array['3'])",
    "settling": "select dataflow.settle('print', 1000, array['', ''])",
    "planning": "select dataflow.plan('print', array['3'], null, '{}', '{}', '{}')",
    "planning without inputs": "select dataflow.plan('print', array['3'], null, array['3'], array['page'], array[''])",
    "a request": "select dataflow.request('print', array['3'], now(), null, '', 'ada', '{}', '{}', '{}')",
    "an announced version": "select dataflow.announce('book', array['3'], array[null::jsonb])",
    "a typed RESUBMIT": "insert into dataflow.datastatus values ('book', 'print', '3', 'OUT', 'RESUBMIT')",
}


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_a_chunk_that_was_answered_no_is_not_claimed_by_any_trick(flow: Flow, attacker: Attacker, role: str) -> None:
    psql = attacker(role)
    for trick, typed in TRICKS.items():
        attempt(psql, typed)
        blocked = flow.psql.execute("select blocked from dataflow.runnable where jobid = 'print'").fetchall()
        assert blocked == [("NOT_VALIDATED",)], trick
        for named in ("true", "false"):
            claims = psql.execute(CLAIM.format(named=named).encode()).fetchall()
            assert [answer["claims"] for (answer,) in claims] == [[]], trick
    with pytest.raises(NoGo, match="NOT_VALIDATED"):
        claim(flow.ledger, "print", "3")


def test_an_answer_about_files_is_stored_with_the_login_and_the_ledgers_own_answers(
    flow: Flow, attacker: Attacker
) -> None:
    attacker("operator").execute("select dataflow.record('print', array['3'], array['it is not there'], false)")
    found = flow.psql.execute(
        "select login, code, jsonb_path_query_array(problems, '$.problem')"
        " from dataflow.verdict order by verdict_id desc"
    ).fetchone()
    assert found == ("hostile_operator", "INVALID_PATH", ["MISPLACED", "NO_MANIFEST"])


def test_an_operator_announces_no_version_of_a_chunk_that_a_job_produces(flow: Flow, attacker: Attacker) -> None:
    manifest = '{"location": "/tmp", "files": [], "bytes": 0, "checks": []}'
    forged = f"select dataflow.announce('raw', array['1'], array['{manifest}'::jsonb])"
    assert "a job produces it" in str(attempt(attacker("operator"), forged))


FORGED_MANIFESTS: dict[str, dict[str, object]] = {
    "a location beside its root": {"location": "{root}/raw/../book/9"},
    "a location that goes nowhere": {"location": "{root}/raw/./9"},
    "a file beside its location": {"files": [{"path": "../../book/9/part-0", "size": 5}]},
    "a file anywhere": {"files": [{"path": "/etc/passwd", "size": 5}]},
    "a file without a size": {"files": [{"path": "part-0"}]},
    "a size below zero": {"files": [{"path": "part-0", "size": -1}]},
    "a size that no number type holds": {"files": [{"path": "part-0", "size": 2**63}]},
    "files that are none": {"files": [[{"path": "part-0", "size": 1}]]},
    "no list of files": {"files": {"path": "part-0", "size": 1}},
    "no files at all": {"files": None},
    "a check without a name": {"checks": [{"passed": True}]},
    "a check that neither passed nor failed": {"checks": [{"name": "rows", "passed": "perhaps"}]},
    "a check with a strange detail": {"checks": [{"name": "rows", "passed": True, "detail": 5}]},
}


@pytest.mark.parametrize("forged", FORGED_MANIFESTS)
def test_a_manifest_that_no_program_could_read_is_no_version(flow: Flow, attacker: Attacker, forged: str) -> None:
    """One of them in a list of candidates would stop every claim of the consumer."""
    claimed, psql = claim(flow.ledger, "load", "9"), attacker("operator")
    manifest = {"location": f"{flow.root}/raw/9", "files": [], "bytes": 0, "checks": []} | FORGED_MANIFESTS[forged]
    manifest["location"] = str(manifest["location"]).format(root=flow.root)
    output = {"datasetid": "raw", "jobid": "load", "dataid": "9", "claim_id": claimed.claim_id} | manifest
    with psql.transaction(force_rollback=True):
        answer = psql.execute("select dataflow.publish(%s)", (json.dumps([output]),)).fetchone()
    assert answer is not None
    assert [refused["problem"] for refused in answer[0]["refused"]] == ["UNREADABLE"]
    with pytest.raises(psycopg.errors.DatabaseError, match="not readable"):
        psql.execute("select dataflow.announce('page', array['9'], array[%s::jsonb])", (json.dumps(manifest),))


def test_a_number_of_retries_that_an_operator_typed_never_keeps_a_chunk_from_healing(
    flow: Flow, attacker: Attacker
) -> None:
    for dataid, number in (("8", 2**31 - 1), ("9", -(2**31))):
        claim(flow.ledger, "load", dataid)
        typed = f"update dataflow.datastatus set retries = {number} where dataid = '{dataid}'"
        attacker("operator").execute(typed.encode())
    flow.type("update dataflow.datastatus set lease_until = now() where claim_id is not null")
    healed = heal(flow.ledger)
    assert (healed.gave_up, healed.resubmitted, healed.problems) == ((key("raw/8"),), (key("raw/9"),), ())
    assert flow.chunk("raw/9").retries == 1


@pytest.mark.parametrize("held", ["HOLD", "RUNNING"])
def test_a_hold_that_was_typed_with_a_memory_that_cannot_come_back_can_be_ended(
    flow: Flow, attacker: Attacker, held: str
) -> None:
    attacker("operator").execute(
        "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, held_status)"
        " values ('raw', 'load', '8', 'OUT', 'HOLD', %s)",
        (held,),
    )
    unhold(flow.ledger, [key("raw/8")], by="owner")
    assert flow.status("raw/8") == "RESUBMIT"


# ---- passwords

LOOKS = {
    "the column": "select encryptedpass from dataflow.dataset",
    "the row": "select * from dataflow.dataset",
    "the row as JSON": "select to_jsonb(d) from dataflow.dataset d",
    "a comparison": "select datasetid from dataflow.dataset where encryptedpass like 'odf%'",
    "a copy": "copy dataflow.dataset to stdout",
    "another column": "update dataflow.dataset set description = encryptedpass",
    "a change": "update dataflow.dataset set description = '' returning encryptedpass",
    "an upsert": "insert into dataflow.dataset as d (datasetid) values ('raw') on conflict (datasetid)"
    " do update set description = d.encryptedpass",
    "a broken constraint": "update dataflow.dataset set foreign_ready = 'x' where datasetid = 'raw'",
    "statistics": "select 1 / count(*) from pg_stats where tablename = 'dataset' and attname = 'encryptedpass'",
}


@pytest.mark.parametrize("role", EVERYONE)
def test_nobody_reads_a_stored_password(flow: Flow, attacker: Attacker, role: str) -> None:
    flow.type("analyze dataflow.dataset")
    psql = attacker(role)
    for look, typed in LOOKS.items():
        refused = attempt(psql, typed)
        assert refused is not None, look
        assert "ciphertext" not in refused, look


def test_a_password_is_for_the_verb_that_needs_it(flow: Flow, attacker: Attacker) -> None:
    verbs = ("dataflow.script_items('load')", "dataflow.stored_passwords(false)")
    readable = {
        role: [attempt(attacker(role), f"select encryptedpass from {verb}") is None for verb in verbs]
        for role in EVERYONE
    }
    assert readable == {
        "stranger": [False, False],
        "reader": [False, False],
        "operator": [True, False],
        "admin": [True, True],
    }


# ---- shadowing, casts and settings

#: A schema where everybody may create, as careless installations have one.
PLAYGROUND = "playground"
SHADOWS = f"""
    create function {PLAYGROUND}.now() returns timestamptz language sql as 'select timestamptz ''2001-01-01''';
    create function {PLAYGROUND}.lie(text, text) returns boolean language sql as 'select false';
    create function {PLAYGROUND}.lie(name, text) returns boolean language sql as 'select false';
    create function {PLAYGROUND}.lie(bigint, bigint) returns boolean language sql as 'select false';
    create operator {PLAYGROUND}.= (leftarg = text, rightarg = text, function = {PLAYGROUND}.lie);
    create operator {PLAYGROUND}.<> (leftarg = text, rightarg = text, function = {PLAYGROUND}.lie);
    create operator {PLAYGROUND}.~ (leftarg = text, rightarg = text, function = {PLAYGROUND}.lie);
    create operator {PLAYGROUND}.= (leftarg = bigint, rightarg = bigint, function = {PLAYGROUND}.lie);
    create function {PLAYGROUND}.btrim(text) returns text language sql as 'select ''x''';
    create function {PLAYGROUND}.octet_length(text) returns int language sql as 'select 1';
    create function {PLAYGROUND}.current_setting(text, boolean) returns text language sql as 'select ''owner''';
    create domain {PLAYGROUND}.jsonb as pg_catalog.text;
    create temporary table datastatus (like dataflow.datastatus);
    create temporary view new_rows as select * from dataflow.datastatus;
    create temporary view old_rows as select * from dataflow.datastatus;
    create temporary table change (datasetid text);
    create domain pg_temp.text as pg_catalog.text check (false);
    set search_path = {PLAYGROUND}, pg_temp, pg_catalog
"""


@pytest.fixture
def playground(flow: Flow) -> Iterator[None]:
    flow.type(f"create schema {PLAYGROUND}; grant all on schema {PLAYGROUND} to public")
    yield
    flow.type(f"drop schema {PLAYGROUND} cascade")


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_shadowed_names_do_not_reach_our_functions(flow: Flow, playground: None, attacker: Attacker, role: str) -> None:
    psql = attacker(role)
    psql.execute(SHADOWS.encode())
    for refused in (
        "update dataflow.datastatus set status = 'READY' where dataid operator(pg_catalog.=) '2'",
        "insert into dataflow.datastatus values ('raw', 'load', '', 'OUT', 'READY')",
        "insert into dataflow.datastatus values ('raw', 'load', E'a\\nb', 'OUT', 'READY')",
        "update dataflow.datastatus set locktype = 'BOTH'",
    ):
        assert str(attempt(psql, refused)).startswith(("DF001", "23514")), refused
    psql.execute("insert into dataflow.datastatus values ('raw', 'other', '5', 'OUT', 'READY', '2001-01-01')")
    assert flow.chunk("raw/5").modified.year > 2001
    assert last_event(flow, "5") == (None, "READY", f"hostile_{role}")
    assert ("clean", "5") in flow.runnable()
    psql.execute("select dataflow.evaluate(array['clean'], array['5'])")
    psql.execute("select dataflow.evaluate_again('clean', array['5'])")
    assert ("clean", "5") in flow.runnable()


def test_a_cast_of_the_callers_runs_with_the_callers_rights(flow: Flow, playground: None, attacker: Attacker) -> None:
    psql = attacker("operator")
    psql.execute(
        f"create table {PLAYGROUND}.told (who text); create type {PLAYGROUND}.word as (word text);"
        f"create function {PLAYGROUND}.tell({PLAYGROUND}.word) returns text language sql"
        f" as 'insert into {PLAYGROUND}.told values (current_user); select ($1).word';"
        f"create cast ({PLAYGROUND}.word as text) with function {PLAYGROUND}.tell as assignment;"
        f"insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)"
        f" select 'raw', 'other', '6', 'OUT', row('READY')::{PLAYGROUND}.word".encode()
    )
    psql.execute(f"select dataflow.begin_run('load', row('x')::{PLAYGROUND}.word::text, null)".encode())
    told = psql.execute(f"select distinct who from {PLAYGROUND}.told".encode()).fetchall()
    assert told == [("hostile_operator",)]
    assert last_event(flow, "6") == (None, "READY", "hostile_operator")


SETTINGS = {
    "dataflow.actor": "owner",
    "dataflow.reason": "ordered by ada",
    "dataflow.taking": "on",
    "dataflow.publishing": "on",
    "search_path": "",
    "standard_conforming_strings": "off",
    "plpgsql.check_asserts": "off",
    "check_function_bodies": "off",
    "row_security": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "datestyle": "SQL, DMY",
    "intervalstyle": "sql_standard",
    "timezone": "Pacific/Kiritimati",
    "bytea_output": "escape",
    "enable_indexscan": "off",
    "plan_cache_mode": "force_custom_plan",
    "constraint_exclusion": "on",
}


def test_no_setting_of_a_session_switches_off_a_guarantee(flow: Flow, attacker: Attacker) -> None:
    for dataid, (setting, value) in enumerate(SETTINGS.items(), 100):
        psql = attacker("operator")
        psql.execute("select set_config(%s, %s, false)", (setting, value))
        typed = "insert into dataflow.datastatus values ('raw', 'other', {}, 'OUT', 'READY')"
        psql.execute(typed.format(f"'{dataid}'").encode())
        assert last_event(flow, str(dataid)) == (None, "READY", "hostile_operator"), setting
        assert ("clean", str(dataid)) in flow.runnable(), setting
        for refused in (WAYS_OUT_OF_HOLD["a null"], WAYS_OUT_OF_HOLD["a deletion"], typed.format("'a' || chr(7)")):
            assert attempt(psql, refused) is not None, setting
        resubmit = f"update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'raw' and dataid = '{dataid}'"
        psql.execute(resubmit.encode())
        assert last_event(flow, str(dataid)) == ("READY", "RESUBMIT", "hostile_operator"), setting
        assert ("clean", str(dataid)) not in flow.runnable(), setting
