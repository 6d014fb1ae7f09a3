"""What Python and Postgres both know - arrows, codes, order, partitions, defaults - they know alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from typing import Any, get_args, get_type_hints

import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.schema_files import texts
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import OpenDataFlowError
from opendataflow_dagster.model.ids import DatasetId, JobId, natural_key
from opendataflow_dagster.model.job import Job, Policy
from opendataflow_dagster.model.partitions import (
    SOME_TIME,
    Partitions,
    RangePartitions,
    TimePartitions,
    keys_until,
    partitions_from_json,
)
from opendataflow_dagster.model.problems import SENTENCES, Question
from opendataflow_dagster.model.status import FREE, TRANSITIONS, Locktype, Status
from opendataflow_dagster.model.verdict import CODES, Code
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.release import abandon
from tests.databases import temporary_database
from tests.factories import Flow
from tests.partitions import near_dataids, range_partitions, shifted, static_partitions, time_partitions


@pytest.fixture(scope="module")
def database(server: str, template: str) -> Iterator[str]:
    yield from temporary_database(server, template)


@pytest.fixture(scope="module")
def psql(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def value_of(psql: psycopg.Connection, statement: str, *values: object) -> Any:
    found = psql.execute(statement.encode(), values).fetchone()
    assert found is not None
    return found[0]


# ---- status

ARROWS = {(old, new) for old, targets in TRANSITIONS.items() for new in targets}


def test_both_have_the_same_arrows(psql: psycopg.Connection) -> None:
    found = psql.execute("select old_status, new_status from dataflow.status_transition").fetchall()
    assert {(Status(old), Status(new)) for old, new in found} == ARROWS
    assert len(found) == len(ARROWS)
    assert set(TRANSITIONS) == set(Status)


@pytest.mark.parametrize("old", Status)
def test_every_arrow_typed_in_sql_is_taken_or_refused_as_the_table_says(psql: psycopg.Connection, old: Status) -> None:
    for new in Status:
        psql.execute(
            "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, held_status) "
            "values ('arrows', 'j', %s, 'OUT', %s, %s)",
            # A hold gives back what it held.
            (f"{old}-{new}", old, new if old is Status.HOLD else None),
        )
        typed = "update dataflow.datastatus set status = %s where datasetid = 'arrows' and dataid = %s"
        if (old, new) in ARROWS or old is new:
            assert psql.execute(typed, (new, f"{old}-{new}")).rowcount == 1
            expected = new
        else:
            with pytest.raises(psycopg.Error, match=f"arrows/{old}-{new} cannot go from {old} to {new}") as refused:
                psql.execute(typed, (new, f"{old}-{new}"))
            assert refused.value.sqlstate == "DF001"
            expected = old
        kept = "select status from dataflow.datastatus where datasetid = 'arrows' and dataid = %s"
        assert value_of(psql, kept, f"{old}-{new}") == expected


@pytest.mark.parametrize("held", [status for status in Status if status not in (Status.RUNNING, Status.HOLD)])
def test_from_hold_a_chunk_goes_to_what_it_was_or_runs_again_or_is_skipped(
    psql: psycopg.Connection, held: Status
) -> None:
    psql.execute(
        "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, held_status) "
        "values ('holds', 'j', %s, 'OUT', 'HOLD', %s)",
        (held, held),
    )
    typed = "update dataflow.datastatus set status = %s where datasetid = 'holds'"
    for new in {Status.PENDING, Status.READY, Status.FAILED, Status.RUNNING, "finished", None} - {held}:
        with pytest.raises(psycopg.Error, match=f"cannot go from HOLD to {new or 'none'}"):
            psql.execute(typed, (new,))
    with pytest.raises(psycopg.Error, match="is on HOLD and cannot be deleted"):
        psql.execute("delete from dataflow.datastatus where datasetid = 'holds'")
    assert value_of(psql, "select status from dataflow.datastatus where datasetid = 'holds'") == "HOLD"
    psql.execute(typed, (held,))
    psql.execute("delete from dataflow.datastatus where datasetid = 'holds'")


def test_a_word_that_nobody_knows_comes_back_after_a_hold(psql: psycopg.Connection) -> None:
    psql.execute("insert into dataflow.datastatus values ('odd', 'j', '1', 'OUT', 'finished', now())")
    for word in ("HOLD", "finished"):
        psql.execute("update dataflow.datastatus set status = %s where datasetid = 'odd'", (word,))
    assert value_of(psql, "select status from dataflow.datastatus where datasetid = 'odd'") == "finished"


def test_a_refused_arrow_leaves_all_rows_of_its_statement_as_they_were(psql: psycopg.Connection) -> None:
    for dataid, status in (("1", "FAILED"), ("2", "SKIPPED")):
        psql.execute("insert into dataflow.datastatus values ('both', 'j', %s, 'OUT', %s, now())", (dataid, status))
    with pytest.raises(psycopg.Error, match="both/2 cannot go from SKIPPED to READY"):
        psql.execute("update dataflow.datastatus set status = 'READY' where datasetid = 'both'")
    found = psql.execute("select status from dataflow.datastatus where datasetid = 'both' order by dataid").fetchall()
    assert found == [("FAILED",), ("SKIPPED",)]


@pytest.mark.parametrize("setting", ["dataflow.taking", "dataflow.publishing"])
def test_no_setting_of_a_session_keeps_a_consumer_from_being_woken(flow: Flow, setting: str) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    flow.type(f"set {setting} = 'on'")
    flow.type("insert into dataflow.datastatus values ('raw', 'load', '1', 'OUT', 'RUNNING', now())")
    flow.type("update dataflow.datastatus set status = 'READY' where datasetid = 'raw'")
    assert value_of(flow.psql, "select count(*) from dataflow.runnable where jobid = 'clean'") == 1
    flow.type(f"reset {setting}")


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.HOLD])
def test_a_word_that_nobody_knows_may_come_and_go(psql: psycopg.Connection, status: Status) -> None:
    psql.execute("insert into dataflow.datastatus values ('words', 'j', %s, 'OUT', %s, now())", (status, status))
    for word in ("finished", None, status):
        typed = "update dataflow.datastatus set status = %s where datasetid = 'words' and dataid = %s"
        assert psql.execute(typed, (word, status)).rowcount == 1


def test_both_say_which_outputs_are_free(flow: Flow) -> None:
    flow.register("load: -> raw")
    for status in Status:
        flow.announce(f"raw/{status}", status, jobid="load")
    assert {dataid for _, dataid in flow.runnable()} == FREE


def test_both_have_the_same_lock_types(psql: psycopg.Connection) -> None:
    source = value_of(psql, "select prosrc from pg_proc where proname = 'is_whole'")
    (rule,) = re.findall(r"p_locktype not in \((.*?)\)", source)
    assert set(re.findall(r"'(\w+)'", rule)) == set(Locktype)


@pytest.mark.parametrize(
    ("invariant", "values"),
    [
        ("locktype_is_in_or_out", "'BOTH', 'READY', null, null, null"),
        ("a_claim_is_running", "'IN', 'READY', 7, null, null"),
        ("a_claim_is_running", "'IN', null, 7, null, null"),
        ("an_out_claim_has_a_lease", "'OUT', 'RUNNING', 7, null, null"),
        ("an_out_claim_has_a_lease", "'OUT', 'RUNNING', null, now(), null"),
        ("only_a_held_chunk_remembers", "'OUT', 'READY', null, null, 'READY'"),
        ("only_a_held_chunk_remembers", "'OUT', null, null, null, 'READY'"),
    ],
)
def test_a_typed_row_that_breaks_an_invariant_is_refused_by_its_name(flow: Flow, invariant: str, values: str) -> None:
    columns = "datasetid, jobid, dataid, locktype, status, claim_id, lease_until, held_status"
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        flow.type(f"insert into dataflow.datastatus ({columns}) values ('raw', 'load', '1', {values})")
    assert refused.value.diag.constraint_name == invariant


# ---- questions and codes


@pytest.mark.parametrize("question", Question)
def test_both_call_the_first_no_by_the_same_code(psql: psycopg.Connection, question: Question) -> None:
    problems = [{"question": later} for later in list(Question)[list(Question).index(question) :]]
    assert value_of(psql, "select dataflow.code_of(%s)", Jsonb(problems)) == CODES[question]


def test_five_yes_have_no_code(psql: psycopg.Connection) -> None:
    assert value_of(psql, "select dataflow.code_of('[]')") is None
    assert list(CODES.values()) == list(Code)


def test_every_problem_that_postgres_names_has_a_sentence_and_the_other_way_round() -> None:
    routines = "".join(texts("routines").values())
    named = set(re.findall(r"'problem', '([A-Z_]+)'", routines))
    for question in ("ready", "right", "placed", "valid", "safe"):
        body = re.search(rf"create function dataflow.question_{question}\(.*?end;", routines, re.DOTALL)
        assert body is not None
        named |= set(re.findall(r"then '([A-Z_]+)'", body[0]))
    # About files, which Postgres does not know, and a sentence of release 0.1.0.
    assert named | {"MISPLACED", "TEXT"} == set(SENTENCES)


def test_the_defaults_of_a_policy_are_the_same(flow: Flow) -> None:
    lease, attempts = flow.psql.execute("select dataflow.lease_of('?'), dataflow.max_attempts_of('?')").fetchone() or ()
    assert (lease, attempts) == (Policy().lease, Policy().max_attempts)
    flow.type("insert into dataflow.job_policy (jobid) values ('load')")
    stored = flow.psql.execute("select lease, max_attempts from dataflow.job_policy").fetchone()
    assert stored == (lease, attempts)


# ---- the natural order


def dataids() -> st.SearchStrategy[str]:
    """Numbers, dates and letters, mixed: what orders differently by letters and by value."""
    pieces = st.sampled_from(
        [
            "0",
            "1",
            "9",
            "10",
            "00",
            "007",
            "2024-01-01",
            "2024-1-10",
            "2024-01-01-05:00",
            "-",
            ".",
            "a",
            "B",
            "é",
            "😀",
            "٣",
        ]
    )
    long = st.builds(lambda digit, count: digit * count, st.sampled_from("019a"), st.integers(15, 60))
    text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
    return st.lists(pieces | long | text, min_size=1, max_size=8).map("".join)


@given(keys=st.lists(dataids(), min_size=2, max_size=12))
@settings(max_examples=150, deadline=None)
def test_both_order_dataids_alike(psql: psycopg.Connection, keys: list[str]) -> None:
    found = psql.execute(
        'select k from unnest(%s::text[]) as k order by dataflow.natural_key(k), k collate "C"', (keys,)
    ).fetchall()
    assert [key for (key,) in found] == sorted(keys, key=natural_key)


@given(key=dataids())
@settings(max_examples=150, deadline=None)
def test_both_make_the_same_sort_key(psql: psycopg.Connection, key: str) -> None:
    assert value_of(psql, "select dataflow.natural_key(%s)", key) == natural_key(key)[0]


# ---- partitions


@given(data=st.data(), hours=st.integers(-50, 2500))
@settings(max_examples=300, deadline=None)
def test_both_expect_the_same_partitions_by_a_time(psql: psycopg.Connection, data: st.DataObject, hours: int) -> None:
    partitions: Partitions = data.draw(time_partitions() | range_partitions() | static_partitions())
    now = SOME_TIME
    if isinstance(partitions, TimePartitions):
        now = shifted(partitions.time_of(partitions.first), hours) + timedelta(
            minutes=data.draw(st.sampled_from([0, 30]))
        )
    elif isinstance(partitions, RangePartitions):
        assume((partitions.last - partitions.first) // partitions.step < 1000)
    expected = list(reversed(keys_until(partitions, now)))
    found = psql.execute(
        "select dataid from dataflow.past_partitions(%s, %s::timestamp)", (Jsonb(partitions.to_json()), now)
    ).fetchall()
    assert [dataid for (dataid,) in found] == expected
    first, newest, count = psql.execute(
        "select first, newest, expected from dataflow.past(%s, %s::timestamp)", (Jsonb(partitions.to_json()), now)
    ).fetchall()[0]
    assert count == len(expected)
    if isinstance(partitions, TimePartitions) and expected:
        assert (first, newest) == (expected[-1], expected[0])


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_both_say_which_dataids_a_dataset_has(psql: psycopg.Connection, data: st.DataObject) -> None:
    partitions: Partitions = data.draw(time_partitions() | range_partitions() | static_partitions())
    dataid = data.draw(near_dataids(partitions))
    assert value_of(psql, "select dataflow.has_dataid(%s, %s)", Jsonb(partitions.to_json()), dataid) == partitions.has(
        dataid
    )


def test_a_dataset_without_partitions_has_every_dataid(psql: psycopg.Connection) -> None:
    assert value_of(psql, "select dataflow.has_dataid(null, 'anything')") is True


NO_SCHEMES: list[object] = [
    {},
    [],
    "daily",
    5,
    {"kind": "yearly", "first": "2024-01-01"},
    {"kind": "daily"},
    {"kind": "daily", "first": "2024-02-31"},
    {"kind": "daily", "first": "2024-1-1"},
    {"kind": "daily", "first": "2024-01-02", "last": "2024-01-01"},
    {"kind": "daily", "first": "2024-01-02", "last": "soon"},
    {"kind": "hourly", "first": "2024-01-01-00:30"},
    {"kind": "hourly", "first": "2024-01-01"},
    {"kind": "monthly", "first": "2024-01-02"},
    {"kind": "range"},
    {"kind": "range", "first": 0, "last": 10, "step": 0},
    {"kind": "range", "first": 11, "last": 10, "step": 1},
    {"kind": "range", "first": -1, "last": 10, "step": 1},
    {"kind": "range", "first": "0", "last": 10, "step": 1},
    {"kind": "range", "first": 0, "last": 10**18, "step": 1},
    {"kind": "static"},
    {"kind": "static", "keys": []},
    {"kind": "static", "keys": "eu"},
    {"kind": "static", "keys": {"eu": "us"}},
]


@pytest.mark.parametrize("scheme", NO_SCHEMES)
def test_both_refuse_what_is_no_partition_scheme(psql: psycopg.Connection, scheme: Any) -> None:
    with pytest.raises((OpenDataFlowError, TypeError, ValueError)):
        partitions_from_json(dict(scheme))
    with pytest.raises(psycopg.Error, match=r"DataSet typed: .* are not partitions") as refused:
        psql.execute("insert into dataflow.dataset (datasetid, partitions) values ('typed', %s)", (Jsonb(scheme),))
    assert refused.value.sqlstate == "DF002"
    assert value_of(psql, "select count(*) from dataflow.past(%s, now()::timestamp)", Jsonb(scheme)) == 0


@given(partitions=time_partitions() | range_partitions() | static_partitions())
@settings(max_examples=100, deadline=None)
def test_both_take_every_partition_scheme(psql: psycopg.Connection, partitions: Partitions) -> None:
    assert value_of(psql, "select dataflow.is_scheme(%s)", Jsonb(partitions.to_json())) is True


# ---- defaults


def row_of(psql: psycopg.Connection, table: str, name: str) -> dict[str, Any]:
    key = {"job_policy": "jobid", "dataset": "datasetid"}[table]
    with psql.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(f"select * from dataflow.{table} where {key} = %s".encode(), (name,)).fetchone()
    assert found is not None
    return {column: value for column, value in found.items() if column not in (key, "modified")}


def test_a_policy_has_the_same_defaults_in_both(psql: psycopg.Connection) -> None:
    psql.execute("insert into dataflow.job_policy (jobid) values ('plain')")
    assert row_of(psql, "job_policy", "plain") == {
        field.name: getattr(Policy(), field.name) for field in fields(Policy)
    }


def test_a_job_without_a_policy_has_the_lease_and_attempts_of_the_default(flow: Flow) -> None:
    flow.register("load: -> raw")
    flow.type("delete from dataflow.job_policy")
    flow.announce("raw/1", "PENDING", jobid="load")
    for attempt in range(1, Policy().max_attempts + 1):
        taken = claim(flow.ledger, "load", "1")
        assert taken.lease == Policy().lease
        abandon(flow.ledger, [taken], "given up")
        assert flow.status("raw/1") == ("FAILED" if attempt == Policy().max_attempts else "RESUBMIT")


def test_a_dataset_has_the_same_defaults_in_both(database: str, psql: psycopg.Connection) -> None:
    psql.execute("insert into dataflow.dataset (datasetid) values ('by_sql')")
    with Ledger(database) as ledger:
        register(ledger, [Dataset(datasetid=DatasetId("by_code"))])
    assert row_of(psql, "dataset", "by_sql") == row_of(psql, "dataset", "by_code")


def test_registering_the_defaults_over_what_sql_registered_changes_nothing(
    database: str, psql: psycopg.Connection
) -> None:
    psql.execute("insert into dataflow.dataset (datasetid) values ('plain_raw')")
    psql.execute("insert into dataflow.job (jobid, itemtype, datasetid) values ('plain_job', 'OUT', 'plain_raw')")
    psql.execute("insert into dataflow.job_policy (jobid) values ('plain_job')")
    with Ledger(database) as ledger:
        plain = Job(jobid=JobId("plain_job"), outputs=(DatasetId("plain_raw"),))
        assert register(ledger, [Dataset(datasetid=DatasetId("plain_raw"))], [plain]) == 0


@pytest.mark.parametrize("column", ["foreign_ready", "skipped_input", "on_new_input"])
def test_both_have_the_same_choices_for_a_dataset(psql: psycopg.Connection, column: str) -> None:
    text = value_of(
        psql, "select pg_get_constraintdef(oid) from pg_constraint where conname = %s", f"dataset_{column}_check"
    )
    typed = get_type_hints(Dataset)[column]
    assert set(re.findall(r"'(\w+)'", text)) == set(words(typed))


def words(typed: Any) -> Iterator[Any]:
    """The words of a Literal, also of one that may be None."""
    for part in get_args(typed):
        yield from words(part) if get_args(part) else ([part] if isinstance(part, str) else [])
