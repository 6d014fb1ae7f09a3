"""Every function, table, sequence and type of the schema, with what each role may do with it.

A new one that is not listed here fails: decide who needs it, then grant it in roles.sql and list it.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

PUBLIC, READER, OPERATOR, ADMIN = "public", "dataflow_reader", "dataflow_operator", "dataflow_admin"
EVERY_ROLE = (READER, OPERATOR, ADMIN)

#: They only read, with the rights of the caller.
READING = """
    answers ask chunks_after claimed_inputs code_of consumers_of content_lock deadlines first_problems folder
    folders_above has_dataid holders_of is_bound is_day is_its_day is_news is_readable is_scheme
    is_shared lease_of max_attempts_of must_wait natural_key
    made_from other_inputs_of overlapping_roots past past_partitions problems_of problems_of_chunk question_placed
    question_ready
    question_right question_safe question_valid refuse_isolation room share_of spellings status_after_crash sweep_lock
    stale_inputs unlisted_input were_made_stale were_used
    versions_near versions_read versions_to_drop whose_turn with_manifests
    has_left_over server_timezone
"""
#: What an operator does beyond typing a status. With the rights of the owner, and arguments of plain types.
OPERATING = """
    announce begin_run claim delete_empty_run drop_versions end_forgotten_runs end_run evaluate evaluate_again force
    fail open_days patrol plan publish rebuild_stale rebuild_turns record record_heartbeat renew request
    register_script remove_left_over rollback script_items settle versions_dropped
"""
#: Who is in the way. With the rights of the owner, who may see what the sessions of his own logins do.
NAMING = "idle_writers refuse_to_wait"
ADMINISTERING = "hold_registry stored_passwords"
#: Of constraints, which run as the user who writes.
CHECKING = "is_name is_whole"
#: Triggers, and what the functions above call.
INTERNAL = """
    adopt_rows after_control_change after_dataset_change after_delete after_insert after_job_change after_listing
    after_policy_change after_update align_outputs await_evaluations dependents_of evaluate_around_reader
    evaluate_differing follow guard_row keep_modified keep_turns
    ask_consumers lock_planned_inputs lock_registry lock_turns lock_versions look_again mark_stale
    pass_turns record_definition refuse refuse_change
    refuse_stale refuse_swept refuse_truncate release_in_rows unsettle
    open_former_days register_today
"""
EXECUTE = {
    **{name: set(EVERY_ROLE) for name in READING.split()},
    **{name: set(EVERY_ROLE) for name in NAMING.split()},
    **{name: {OPERATOR, ADMIN} for name in OPERATING.split()},
    **{name: {ADMIN} for name in ADMINISTERING.split()},
    **{name: {PUBLIC} for name in CHECKING.split()},
    **{name: set() for name in INTERNAL.split()},
}

_STATUS = {"DELETE"} | {
    f"INSERT {column}"
    for column in ("datasetid", "jobid", "dataid", "locktype", "status", "modified", "reason", "held_status")
}
_STATUS |= {f"UPDATE {column}" for column in ("locktype", "status", "modified", "reason", "retries")}
_CONTROL = {f"INSERT {column}" for column in ("jobid", "concurrency", "paused", "reason")}
_CONTROL |= {f"UPDATE {column}" for column in ("concurrency", "paused", "reason")}
_WRITE = {"INSERT", "UPDATE", "DELETE"}
#: What is written, by whom. Every role reads every table, except for the passwords in dataset.
OPERATORS_WRITE: dict[str, set[str]] = {
    "datastatus": _STATUS,
    "job_control": _CONTROL,
    "reported": {"INSERT", "DELETE"},
}
ADMINS_WRITE = {
    **OPERATORS_WRITE,
    "job_control": _CONTROL | {"DELETE"},
    "dataset": _WRITE,
    "job": _WRITE,
    "job_policy": _WRITE,
}
TABLES = {
    *("chunk_event", "chunk_input", "data_manifest", "dataset", "datastatus", "job", "job_control", "job_event"),
    *("job_policy", "job_run", "migration", "registry_event", "reported", "runnable", "status_transition", "verdict"),
    *("failure", "patrol", "stale", "turn", "unsettled"),
    "version_sweep",
}
TYPES = {"candidate", "change", "chunk", "fact", "in_row", "runnable_row", "staged", "taken"}


@pytest.fixture(scope="module")
def catalog(shared_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_database, autocommit=True) as connection:
        yield connection


#: Grants to anybody but the owner, as `(object, grantee, privilege)`. `public` is grantee 0.
FUNCTIONS = """
    select p.proname::text, coalesce(r.rolname, 'public')::text
      from pg_proc p
     cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) g
      left join pg_roles r on r.oid = g.grantee
     where p.pronamespace = 'dataflow'::regnamespace and g.grantee <> p.proowner
"""
RELATIONS = """
    select c.relname::text, coalesce(r.rolname, 'public')::text, g.privilege_type || coalesce(' ' || g.attname, '')
      from (select t.oid, a.attname, e.grantee, e.privilege_type
              from pg_class t
             cross join lateral (select null::text as attname, t.relacl as acl
                                 union all
                                 select n.attname::text, n.attacl from pg_attribute n where n.attrelid = t.oid) a
             cross join lateral aclexplode(a.acl) e) g
      join pg_class c on c.oid = g.oid
      left join pg_roles r on r.oid = g.grantee
     where c.relnamespace = 'dataflow'::regnamespace and g.grantee <> c.relowner and c.relkind = any (%s)
"""


def test_every_function_is_listed_with_who_may_execute_it(catalog: psycopg.Connection) -> None:
    names = catalog.execute("select proname::text from pg_proc where pronamespace = 'dataflow'::regnamespace")
    found: dict[str, set[str]] = {name: set() for (name,) in names}
    for name, grantee in catalog.execute(FUNCTIONS):
        found[name].add(grantee)
    assert found == EXECUTE


def test_functions_with_the_owners_rights_are_for_operators_and_triggers_but_for_naming_sessions(
    catalog: psycopg.Connection,
) -> None:
    found = catalog.execute(
        "select proname::text from pg_proc where pronamespace = 'dataflow'::regnamespace and prosecdef"
    )
    assert {name for (name,) in found} - {*NAMING.split(), *OPERATING.split(), *ADMINISTERING.split()} <= set(
        INTERNAL.split()
    )


def test_every_argument_of_an_operators_function_has_a_plain_type(catalog: psycopg.Connection) -> None:
    found = catalog.execute(
        "select distinct t.typname::text, t.typnamespace::regnamespace::text from pg_proc p"
        " cross join lateral unnest(p.proargtypes) as a(type) join pg_type t on t.oid = a.type"
        " where p.pronamespace = 'dataflow'::regnamespace and p.proname = any (%s)",
        ([*NAMING.split(), *OPERATING.split(), *ADMINISTERING.split()],),
    ).fetchall()
    assert {schema for _, schema in found} == {"pg_catalog"}
    assert not {name for name, _ in found if name.startswith(("any", "record"))}


@pytest.mark.parametrize(("role", "writes"), [(READER, {}), (OPERATOR, OPERATORS_WRITE), (ADMIN, ADMINS_WRITE)])
def test_every_table_is_listed_with_what_each_role_may_do(
    catalog: psycopg.Connection, role: str, writes: dict[str, set[str]]
) -> None:
    columns = catalog.execute(
        "select attname::text from pg_attribute where attrelid = 'dataflow.dataset'::regclass and attnum > 0"
        " and not attisdropped and attname <> 'encryptedpass'"
    )
    expected = {name: {"SELECT"} | writes.get(name, set()) for name in TABLES}
    expected["dataset"] = {f"SELECT {name}" for (name,) in columns} | writes.get("dataset", set())
    found: dict[str, set[str]] = {}
    for name, grantee, privilege in catalog.execute(RELATIONS, (["r", "v", "m", "p", "f"],)):
        assert grantee in EVERY_ROLE, f"{name} is granted to {grantee}"
        if grantee == role:
            found.setdefault(name, set()).add(privilege)
    assert found == expected


def test_no_sequence_is_granted(catalog: psycopg.Connection) -> None:
    assert catalog.execute(RELATIONS, (["S"],)).fetchall() == []


def test_every_type_is_listed_and_granted_to_nobody(catalog: psycopg.Connection) -> None:
    found = catalog.execute(
        "select t.typname::text, exists (select from aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) g"
        "                                 where g.grantee <> t.typowner)"
        "  from pg_type t left join pg_class c on c.oid = t.typrelid"
        " where t.typnamespace = 'dataflow'::regnamespace and t.typelem = 0 and coalesce(c.relkind, 'c') = 'c'"
    ).fetchall()
    assert {name for name, _ in found} == TYPES
    assert [name for name, is_granted in found if is_granted] == []


def test_a_function_that_the_owner_adds_later_is_granted_to_nobody(catalog: psycopg.Connection) -> None:
    with catalog.transaction(force_rollback=True):
        catalog.execute("create function dataflow.added_later() returns int language sql return 1")
        granted = catalog.execute("select has_function_privilege('public', 'dataflow.added_later()', 'execute')")
        assert granted.fetchone() == (False,)


def test_nobody_but_the_owner_creates_anything_in_the_schema(catalog: psycopg.Connection) -> None:
    for role in (PUBLIC, *EVERY_ROLE):
        granted = catalog.execute("select has_schema_privilege(%s, 'dataflow', 'create')", (role,))
        assert granted.fetchone() == (False,), role
