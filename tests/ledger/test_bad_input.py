"""Bad input is a clear error that writes nothing; unusual but valid input comes back byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import (
    InvalidDefinition,
    InvalidInput,
    InvalidManifest,
    InvalidName,
    NoGo,
    OpenDataFlowError,
    UnknownName,
)
from opendataflow_dagster.model.ids import ChunkKey, DataId, DatasetId, JobId, data_id, dataset_id, job_id
from opendataflow_dagster.model.job import Input, Job, ListedChunks, Policy
from opendataflow_dagster.model.manifest import CheckResult, File, NewManifest
from opendataflow_dagster.model.partitions import RangePartitions, StaticPartitions, TimePartitions, daily
from opendataflow_dagster.protocol.claim import claim, claim_many, claim_next
from opendataflow_dagster.protocol.gate import gate
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, skip, unhold
from opendataflow_dagster.protocol.job_run import begin_run
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import plan, register
from opendataflow_dagster.protocol.release import abandon, fail
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.factories import Flow, job, key


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


# ---- what every refusal has in common


def everything(flow: Flow) -> list[tuple[object, ...]]:
    """Every row of every table."""
    names = flow.psql.execute("select tablename from pg_tables where schemaname = 'dataflow' order by 1").fetchall()
    looks = [f"select '{name}', to_jsonb(t)::text from dataflow.{name} t" for (name,) in names]
    return flow.psql.execute(f"{' union all '.join(looks)} order by 1, 2".encode()).fetchall()


@contextmanager
def refused(flow: Flow, kind: type[OpenDataFlowError], *words: str) -> Iterator[None]:
    """The block raises this error with these words and a next step, and writes nothing."""
    before = everything(flow)
    with pytest.raises(kind) as error:
        yield
    said = str(error.value)
    for word in words:
        assert word in said
    assert "; " in said, f"no next step: {said}"
    assert len(said) < 1000, "a message is for a person"
    said.encode()  # it can be printed, whatever it is about
    assert everything(flow) == before


def key_of(datasetid: str, dataid: str) -> ChunkKey:
    return ChunkKey(datasetid=DatasetId(datasetid), dataid=DataId(dataid))


# ---- names

GOOD_NAMES = {
    "spaces": "a b  c",
    "spaces around": "  1 ",
    "quotes": """it's "quoted" `so`""",
    "slashes": "a/b//c\\d",
    "dots": "../../etc/passwd",
    "emoji": "😀👩‍👩‍👧",
    "parameter": "%s %(x)s %% {0} $1 :x ?",
    "backslashes": "\\n\\\\0\\x00",
    "shell": "$(rm -rf /); `reboot` && true",
    "sql": "'; drop table dataflow.job; --",
    "json": '{"a": [1]}',
    "array": '{a,NULL,"b"}',
    "null": "NULL",
    "right to left": "\u202eabc",
    "combining": "e\u0301 and \u00e9",
    "no-break space": "\u00a0",
    "a dash": "-",
    "200 bytes": "x" * 200,
}

BAD_NAMES = {
    "empty": "",
    "blank": "   ",
    "newline": "a\nb",
    "carriage return": "a\rb",
    "tab": "a\tb",
    "NUL": "a\x00b",
    "escape": "\x1b[31mred",
    "line separator": "a\u2028b",
    "next line": "a\x85b",
    "lone surrogate": "a\ud800b",
    "10,000 characters": "x" * 10_000,
    "too many bytes": "😀" * 126,
}


@pytest.mark.parametrize("what", GOOD_NAMES)
def test_an_unusual_printable_name_comes_back_byte_for_byte(flow: Flow, what: str) -> None:
    name = GOOD_NAMES[what]
    load = Job(jobid=JobId(name), outputs=(DatasetId(name),))
    clean = Job(jobid=JobId("clean"), inputs=(Input(datasetid=DatasetId(name)),), outputs=(DatasetId("tidy"),))
    folder = flow.root / "data"
    external = Dataset(datasetid=DatasetId(name))
    register(flow.ledger, [external, Dataset(datasetid=DatasetId("tidy"))], [load, clean])
    assert plan(flow.ledger, load, [name]) == 1
    (taken,) = claim_next(flow.ledger, name)
    assert (taken.jobid, taken.dataid, taken.outputs) == (name, name, (name,))
    publish(flow.ledger, taken, NewManifest(location=str(folder)))
    (consumer,) = claim_next(flow.ledger, "clean")
    assert [(needed.datasetid, needed.dataid, needed.version) for needed in consumer.inputs] == [(name, name, 1)]
    resubmit(flow.ledger, [key_of(name, name)], by=name, reason=name)
    with flow.ledger.statement() as statement:
        events = chunks.history(statement, key_of(name, name))
        verdicts = chunks.verdicts(statement, JobId(name), DataId(name))
    outs = [event for event in events if event.locktype == "OUT"]
    assert [event.new_status for event in outs] == ["PENDING", "RUNNING", "READY", "RESUBMIT"]
    assert {(event.datasetid, event.jobid, event.dataid) for event in outs} == {(name, name, name)}
    assert (outs[-1].actor, outs[-1].reason) == (name, name)
    assert [verdict.dataid for verdict in verdicts] == [name]


@pytest.mark.parametrize("what", BAD_NAMES)
def test_an_unusable_name_is_refused_by_every_verb(flow: Flow, what: str) -> None:
    name = BAD_NAMES[what]
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    calls: list[Callable[[], object]] = [
        lambda: plan(flow.ledger, load, ["2", name]),
        lambda: gate(flow.ledger, "load", ["1", name]),
        lambda: gate(flow.ledger, name, ["1"]),
        lambda: claim(flow.ledger, "load", name),
        lambda: claim(flow.ledger, name, "1"),
        lambda: claim_many(flow.ledger, "load", ["1", name]),
        lambda: claim_next(flow.ledger, name),
        lambda: begin_run(flow.ledger, name),
        lambda: Dataset(datasetid=DatasetId(name)),
        lambda: Job(jobid=JobId(name), outputs=(DatasetId("raw"),)),
        lambda: Job(jobid=JobId("j"), outputs=(DatasetId(name),)),
        lambda: Job(jobid=JobId("j"), inputs=(Input(datasetid=DatasetId(name)),), outputs=(DatasetId("raw"),)),
        lambda: StaticPartitions(keys=(DataId(name),)),
        *(
            lambda verb=verb, bad=bad: verb(flow.ledger, [key("raw/1"), key_of(*bad)], by="ada")
            for verb in (hold, skip, resubmit, unhold)
            for bad in (("raw", name), (name, "1"))
        ),
    ]
    for call in calls:
        with refused(flow, InvalidInput):
            call()


@pytest.mark.parametrize("what", BAD_NAMES)
def test_a_mapping_that_gives_a_bad_input_dataid_is_refused(flow: Flow, what: str) -> None:
    (load,) = flow.register(job("sum: hours -> days", hours=ListedChunks(lambda _: ["1", BAD_NAMES[what]])))
    with refused(flow, InvalidName):
        flow.plan(load, ["1", "2"])


#: Typed SQL; each statement contains the name once.
TYPED = {
    "a dataid": "insert into dataflow.datastatus values ('raw', 'load', %s, 'OUT', 'READY', now())",
    "a dataid by update": "update dataflow.datastatus set dataid = %s where dataid = 'there'",
    "a DataSet of a status": "insert into dataflow.datastatus values (%s, 'load', '1', 'OUT', 'READY', now())",
    "a job of a status": "insert into dataflow.datastatus values ('raw', %s, '1', 'OUT', 'READY', now())",
    "a DataSet": "insert into dataflow.dataset (datasetid) values (%s)",
    "a job": "insert into dataflow.job (jobid, itemtype, datasetid) values (%s, 'OUT', 'else')",
    "an input": "insert into dataflow.job (jobid, itemtype, datasetid) values ('load', 'IN', %s)",
    "a policy": "insert into dataflow.job_policy (jobid) values (%s)",
}
# Of the bad names these never reach Postgres: the driver cannot send them.
UNSENDABLE = ("NUL", "lone surrogate")


@pytest.mark.parametrize("what", TYPED)
def test_an_unusable_name_is_refused_in_typed_sql_too(flow: Flow, what: str) -> None:
    flow.announce("raw/there")
    before = everything(flow)
    for bad, name in BAD_NAMES.items():
        if bad not in UNSENDABLE and not ("dataid" in what and bad == "too many bytes" and len(name.encode()) <= 500):
            with pytest.raises(psycopg.errors.CheckViolation):
                flow.type(TYPED[what], name)
    assert everything(flow) == before


def any_text() -> st.SearchStrategy[str]:
    """All of Unicode with lone surrogates, and more text near the limits of the rule."""
    borders = st.text(
        st.sampled_from("a 1\x00\x01\x1f\x20\x7f\x80\x9f\xa0\u2027\u2028\u2029\u202a\ud800\udfff\ufeff😀'\\%")
    )
    long = st.builds(lambda letter, count: letter * count, st.sampled_from(["x", "é", "😀"]), st.integers(95, 505))
    return st.text() | borders | long


@pytest.fixture(scope="module")
def session(shared_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_database, autocommit=True) as connection:
        yield connection


@given(text=any_text())
@settings(max_examples=200, deadline=None)
def test_python_and_postgres_agree_on_what_a_name_is(session: psycopg.Connection, text: str) -> None:
    for check, inserted in (
        (data_id, "insert into dataflow.datastatus values ('d', 'j', %s, 'OUT', 'READY', now())"),
        (dataset_id, "insert into dataflow.datastatus values (%s, 'j', 'x', 'OUT', 'READY', now())"),
        (job_id, "insert into dataflow.datastatus values ('d', %s, 'x', 'OUT', 'READY', now())"),
        (job_id, "insert into dataflow.job_policy (jobid) values (%s)"),
    ):
        assert python_takes(check, text) == postgres_takes(session, inserted, text), inserted


def python_takes(check: Callable[[str], str], text: str) -> bool:
    try:
        assert check(text) == text
    except InvalidName:
        return False
    return True


def postgres_takes(session: psycopg.Connection, inserted: str, text: str) -> bool:
    try:
        with session.transaction(force_rollback=True):
            session.execute(inserted.encode(), (text,))
    except (psycopg.errors.CheckViolation, psycopg.DataError, UnicodeEncodeError):
        return False
    return True


@pytest.fixture
def load(ledger: Ledger) -> Job:
    """The first of two jobs: `any: -> any_raw`, `any2: any_raw -> any_tidy`."""
    first, second = job("any: -> any_raw"), job("any2: any_raw -> any_tidy")
    register(ledger, names("any_raw", "any_tidy"), [first, second])
    return first


@given(text=any_text())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_refused_or_survives_the_whole_path_exactly(
    ledger: Ledger, load: Job, tmp_path: Path, text: str
) -> None:
    try:
        new = plan(ledger, load, [text])
    except InvalidName:
        assert not python_takes(data_id, text)
        return
    if not new:
        return  # Hypothesis has given this text before
    location = NewManifest(location=str(tmp_path / "somewhere"))
    for jobid in ("any", "any2"):
        (taken,) = claim_next(ledger, jobid, 10)
        assert taken.dataid == text
        publish(ledger, taken, location)
    for datasetid in ("any_raw", "any_tidy"):
        with ledger.statement() as statement:
            found = chunks.current_manifest(statement, key_of(datasetid, text))
            events = chunks.history(statement, key_of(datasetid, text))
        assert found is not None
        assert found.dataid == text
        assert {event.dataid for event in events} == {text}


# ---- what is not known


def test_asking_for_more_chunks_than_exist_returns_those_that_exist(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1", "2"])
    assert [claim.dataid for claim in claim_next(flow.ledger, "load", 10**12)] == ["1", "2"]


def test_an_unknown_job_is_refused_by_every_verb(flow: Flow) -> None:
    nobody = Job(jobid=JobId("nobody"), outputs=(DatasetId("raw"),))
    calls: list[Callable[[], object]] = [
        lambda: gate(flow.ledger, "nobody", ["1"]),
        lambda: claim(flow.ledger, "nobody", "1"),
        lambda: claim_many(flow.ledger, "nobody", []),
        lambda: claim_next(flow.ledger, "nobody"),
        lambda: plan(flow.ledger, nobody, ["1"]),
        lambda: begin_run(flow.ledger, "nobody"),
    ]
    for call in calls:
        with refused(flow, UnknownName, "job nobody is not registered"):
            call()


@pytest.mark.parametrize("verb", [hold, skip, resubmit, unhold])
@pytest.mark.parametrize("unknown", ["nothing/1", "raw/2", "src/1"])
def test_an_unknown_chunk_or_dataset_is_refused_and_nothing_else_changes(
    flow: Flow, verb: Callable[..., object], unknown: str
) -> None:
    (load,) = flow.register("load: src -> raw")
    flow.plan(load, ["1"])
    if verb in (hold, skip) and unknown == "raw/2":
        verb(flow.ledger, [key(unknown)], by="ada")
        assert flow.status(unknown) in ("HOLD", "SKIPPED"), "a chunk that is not there yet can be held before it comes"
        return
    with refused(flow, UnknownName, f"there is no chunk {unknown}", "list the "):
        verb(flow.ledger, [key("raw/1"), key(unknown)], by="ada")


def test_many_unknown_chunks_are_named_in_a_short_sentence(flow: Flow) -> None:
    with refused(flow, UnknownName, "raw/0, raw/1, raw/10 and 97 more"):
        resubmit(flow.ledger, [key(f"raw/{number}") for number in range(100)], by="ada")


@pytest.mark.parametrize("count", [0, -1])
def test_a_claim_of_no_chunks_is_refused(flow: Flow, count: int) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    with refused(flow, InvalidInput, f"cannot claim {count} chunks"):
        claim_next(flow.ledger, "load", count)


# ---- definitions that contradict each other


def names(*texts: str) -> list[Dataset]:
    return [Dataset(datasetid=DatasetId(text)) for text in texts]


@pytest.mark.parametrize(
    "jobs",
    [
        ["one: a -> b", "two: b -> a"],
        ["one: a -> b", "two: b -> c", "three: c -> d", "four: d, x -> a"],
    ],
)
def test_a_cycle_is_refused_with_the_names_of_its_datasets(flow: Flow, jobs: list[str]) -> None:
    with refused(flow, InvalidDefinition, "depend on themselves", "a", "b", "remove one input from the cycle"):
        flow.register(*jobs)


def test_a_cycle_closed_by_a_later_registration_is_refused(flow: Flow) -> None:
    flow.register("one: a -> b", "two: b -> c")
    with refused(flow, InvalidDefinition, "a", "b", "c"):
        flow.register("three: c -> a")
    with refused(flow, InvalidDefinition, "a", "b", "c"):
        flow.register("one: a, c -> b")


def test_a_cycle_typed_in_sql_is_refused_with_the_names_of_its_datasets(flow: Flow) -> None:
    flow.register("one: a -> b", "two: b -> c", "apart: x -> y")
    before = everything(flow)
    for statement in (
        "insert into dataflow.job (jobid, itemtype, datasetid) values ('three', 'OUT', 'a'), ('three', 'IN', 'c')",
        "insert into dataflow.job (jobid, itemtype, datasetid) values ('one', 'IN', 'c')",
        "update dataflow.job set datasetid = 'c' where jobid = 'one' and itemtype = 'IN'",
    ):
        with pytest.raises(psycopg.Error, match=r"DataSets are made from themselves: .*b") as error:
            flow.type(statement)
        assert error.value.sqlstate == "DF002"
        assert error.value.diag.message_hint == "remove one IN or OUT item of the jobs in the cycle"
        assert "y" not in str(error.value.diag.message_primary).partition(":")[2]
        assert everything(flow) == before


def test_two_producers_of_a_dataset_are_refused_with_both_names(flow: Flow) -> None:
    with refused(flow, InvalidDefinition, "raw", "one", "two"):
        flow.register("one: -> raw", "two: -> raw")
    flow.register("one: -> raw")
    with refused(flow, InvalidDefinition, "raw", "one", "two"):
        flow.register("two: -> raw")


def test_a_second_producer_typed_in_sql_is_refused(flow: Flow) -> None:
    flow.register("one: -> raw", "two: -> else")
    before = everything(flow)
    with pytest.raises(psycopg.errors.UniqueViolation, match="one_producer_per_dataset"):
        flow.type("insert into dataflow.job (jobid, itemtype, datasetid) values ('two', 'OUT', 'raw')")
    with pytest.raises(psycopg.errors.UniqueViolation, match="one_producer_per_dataset"):
        flow.type("update dataflow.job set datasetid = 'raw' where jobid = 'two'")
    assert everything(flow) == before


@pytest.mark.parametrize("order", [1, -1])
def test_an_output_may_move_from_one_job_to_another_in_one_registration(flow: Flow, order: int) -> None:
    flow.register("one: -> raw, more", "two: -> else")
    flow.register(*["one: -> more", "two: -> else, raw"][::order])
    found = flow.psql.execute("select jobid from dataflow.job where datasetid = 'raw'").fetchall()
    assert found == [("two",)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_chain_may_be_turned_around_in_one_registration(flow: Flow, order: int) -> None:
    flow.register("one: a -> b", "two: b -> c")
    flow.register(*["one: b -> a", "two: c -> b"][::order])
    found = flow.psql.execute("select jobid, itemtype, datasetid from dataflow.job order by 1, 2").fetchall()
    assert found == [("one", "IN", "b"), ("one", "OUT", "a"), ("two", "IN", "c"), ("two", "OUT", "b")]


def test_a_job_without_an_output_is_refused(flow: Flow) -> None:
    with refused(flow, InvalidDefinition, "job clean has no OUT DataSet"):
        job("clean: raw ->")


@pytest.mark.parametrize("text", ["clean: raw -> raw", "clean: raw, raw -> tidy", "clean: raw -> tidy, tidy"])
def test_a_job_that_uses_a_dataset_twice_is_refused(flow: Flow, text: str) -> None:
    with refused(flow, InvalidDefinition, "job clean uses ", "twice"):
        job(text)


def test_a_job_with_an_unregistered_dataset_refuses_the_whole_registration(flow: Flow) -> None:
    with refused(flow, UnknownName, "job clean uses raw, which is not registered"):
        register(flow.ledger, names("tidy", "a", "b"), [job("first: a -> b"), job("clean: raw -> tidy")])


def test_a_name_that_is_declared_twice_is_refused(flow: Flow) -> None:
    with refused(flow, InvalidDefinition, "DataSet raw is declared twice"):
        register(flow.ledger, names("raw", "raw"))
    with refused(flow, InvalidDefinition, "job load is declared twice"):
        register(flow.ledger, names("raw", "b"), [job("load: -> raw"), job("load: -> b")])


YEARLY: Any = "yearly"
BAD_DATASETS: dict[str, Callable[[], dict[str, Any]]] = {
    "an unknown time zone": lambda: {"timezone": "Mars/Olympus"},
    "a root with ..": lambda: {"location": "/w/../raw"},
    "no root": lambda: {"location": "/"},
    "a root with NUL": lambda: {"location": "/w/r\x00w"},
    "a root with a lone surrogate": lambda: {"location": "/w/\ud800"},
    "a description with NUL": lambda: {"description": "a\x00b"},
    "a first day that is none": lambda: {"partitions": daily("2024-02-30")},
    "an end before the beginning": lambda: {"partitions": daily("2024-02-02", "2024-02-01")},
    "an unknown kind of partitions": lambda: {"partitions": TimePartitions(kind=YEARLY, first="2024")},
    "a range that ends before it begins": lambda: {"partitions": RangePartitions(first=5, last=4, step=1)},
    "a range with steps of nothing": lambda: {"partitions": RangePartitions(first=0, last=4, step=0)},
    "a range with steps beyond all numbers": lambda: {"partitions": RangePartitions(first=0, last=4, step=10**19)},
}


@pytest.mark.parametrize("what", BAD_DATASETS)
def test_an_invalid_dataset_is_refused_at_registration(flow: Flow, what: str) -> None:
    with refused(flow, InvalidInput):
        register(flow.ledger, [Dataset(datasetid=DatasetId("today"), **BAD_DATASETS[what]())])


BAD_POLICIES: dict[str, dict[str, Any]] = {
    "no attempt": {"max_attempts": 0},
    "endless attempts": {"max_attempts": 2**31},
    "a broken regular expression": {"retry_on": "(unclosed"},
    "a regular expression with NUL": {"retry_on": "a\x00b"},
}


@pytest.mark.parametrize("what", BAD_POLICIES)
def test_an_invalid_policy_is_refused_at_registration(flow: Flow, what: str) -> None:
    with refused(flow, InvalidInput):
        flow.register(job("load: -> raw", Policy(**BAD_POLICIES[what])))


@pytest.mark.parametrize(
    "typed",
    [
        "insert into dataflow.job_control (jobid, paused) values ('load', 'infinity')",
        "insert into dataflow.job_control (jobid, paused) values ('load', '-infinity')",
        "update dataflow.job_policy set max_attempts = 1000001",
        "update dataflow.dataset set code_version = repeat('x', 201)",
        "insert into dataflow.job (jobid, itemtype, itemvalue) values ('load', '', 'x')",
    ],
)
def test_what_no_command_could_read_cannot_be_typed(flow: Flow, typed: str) -> None:
    """It would hide every other row, too."""
    flow.register("load: -> raw")
    with pytest.raises(psycopg.errors.CheckViolation):
        flow.type(typed)


def test_a_regular_expression_typed_into_a_policy_is_checked_by_postgres(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw", "bad: -> else")[:1]
    flow.plan(load, ["1"])
    fail(flow.ledger, claim(flow.ledger, "load", "1"), "disk full")
    with pytest.raises(psycopg.Error):
        flow.type("update dataflow.job_policy set retry_on = '(' where jobid = 'load'")
    heal(flow.ledger)


BAD_ITEMS = {
    "a name that means something else": {"IN": "1"},
    "no name": {"": "1"},
    "a name with NUL": {"a\x00": "b"},
    "a value with NUL": {"a": "b\x00"},
    "a value with a lone surrogate": {"a": "\ud800"},
}


@pytest.mark.parametrize("what", BAD_ITEMS)
def test_an_unusable_environment_item_is_refused(flow: Flow, what: str) -> None:
    register(flow.ledger, names("raw"))
    with refused(flow, InvalidInput):
        register(flow.ledger, [], [Job(jobid=JobId("load"), outputs=(DatasetId("raw"),), environment=BAD_ITEMS[what])])


# ---- manifests


def claimed(flow: Flow, dataset: Dataset | None = None) -> Claim:
    (load,) = flow.register("load: -> raw", raw=dataset or flow.dataset("raw"))
    flow.plan(load, ["1"])
    return claim(flow.ledger, "load", "1")


def test_a_manifest_with_a_failed_check_is_refused_and_the_claim_is_kept(flow: Flow) -> None:
    taken = claimed(flow)
    good = flow.manifest(taken)
    bad = replace(
        good, checks=(CheckResult(name="rows", passed=False, detail="0 of 7"), CheckResult(name="x", passed=True))
    )
    with refused(flow, InvalidManifest, "raw/1", "rows: 0 of 7"):
        publish(flow.ledger, taken, bad)
    assert publish(flow.ledger, taken, good).version == 1


@pytest.mark.parametrize("given_for", [[], ["raw"], ["raw", "bad", "more"], ["raw", "else"]])
def test_manifests_for_outputs_that_were_not_claimed_are_refused(flow: Flow, given_for: list[str]) -> None:
    (load,) = flow.register("load: -> raw, bad")
    flow.plan(load, ["1"])
    taken = claim(flow.ledger, "load", "1")
    with refused(flow, InvalidManifest, "load/1 was claimed for bad, raw", "give one for each output"):
        manifests = {DatasetId(name): NewManifest(location=f"{flow.root}/{name}/x") for name in given_for}
        publish(flow.ledger, taken, manifests)


@pytest.mark.parametrize("place", ["elsewhere/claim-1", "raw2/claim-1", "raw", "ra/w"])
def test_a_manifest_outside_the_root_is_refused_and_the_claim_is_kept(flow: Flow, place: str) -> None:
    taken = claimed(flow)
    with refused(flow, InvalidManifest, "raw/1", f"{flow.root}/{place}", f"outside its root {flow.root}/raw"):
        publish(flow.ledger, taken, NewManifest(location=f"{flow.root}/{place}"))
    assert publish(flow.ledger, taken, flow.manifest(taken)).version == 1


@pytest.mark.parametrize("given_hash", ["other", None])
def test_a_manifest_with_another_schema_is_refused_and_the_claim_is_kept(flow: Flow, given_hash: str | None) -> None:
    taken = claimed(flow, replace(flow.dataset("raw"), schema_hash="declared"))
    manifest = flow.manifest(taken)
    with refused(flow, InvalidManifest, f"raw/1: schema {given_hash} was written, declared is declared"):
        publish(flow.ledger, taken, replace(manifest, schema_hash=given_hash))
    assert publish(flow.ledger, taken, replace(manifest, schema_hash="declared")).version == 1


def test_one_bad_output_stops_the_publish_of_both(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw, bad")
    flow.plan(load, ["1"])
    taken = claim(flow.ledger, "load", "1")
    with refused(flow, InvalidManifest, "bad/1"):
        publish(
            flow.ledger,
            taken,
            {
                DatasetId("raw"): flow.manifest(taken, "raw"),
                DatasetId("bad"): NewManifest(location=f"{flow.root}/elsewhere/x"),
            },
        )


def test_a_manifest_with_missing_files_is_refused(flow: Flow) -> None:
    taken = claimed(flow)
    good = flow.manifest(taken)
    for wrong in (File(path="part-0", size=1), File(path="part-1", size=1)):
        with refused(flow, InvalidManifest, "raw/1", f"{good.location}/{wrong.path}"):
            publish(flow.ledger, taken, replace(good, files=(wrong,)))


UNSTORABLE = {"NUL": "a\x00b", "lone surrogate": "\ud800"}


@pytest.mark.parametrize("what", UNSTORABLE)
def test_a_manifest_with_text_that_postgres_cannot_hold_is_refused(flow: Flow, what: str) -> None:
    taken, text = claimed(flow), UNSTORABLE[what]
    good = flow.manifest(taken)
    makes: list[Callable[[], NewManifest]] = [
        lambda: replace(good, schema_hash=text),
        lambda: replace(good, content_digest=text),
        lambda: replace(good, files=(), location=f"{flow.root}/raw/{text}"),
        lambda: replace(good, checks=(CheckResult(name="rows", passed=True, detail=text),)),
        lambda: replace(good, files=(File(path=text, size=0),)),
    ]
    for make in makes:
        with refused(flow, OpenDataFlowError):
            publish(flow.ledger, taken, make())
    assert publish(flow.ledger, taken, good).version == 1


# ---- texts that people and programs give for the history


@pytest.mark.parametrize(
    "reason",
    ["a\x00b", "lone \ud800 surrogate", "x" * 1_000_000, "", "\n\n", "naïve 😀\n  at line 3"],
    ids=["NUL", "lone surrogate", "a million letters", "nothing", "blank lines", "several lines"],
)
def test_a_failure_is_recorded_whatever_its_reason_is(flow: Flow, reason: str) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1", "2"])
    first, second = claim_next(flow.ledger, "load", 2)
    fail(flow.ledger, first, reason)
    assert flow.status("raw/1") == "FAILED"
    assert 0 < len(flow.chunk("raw/1").reason or "") <= 2000
    abandon(flow.ledger, [second], reason)
    assert flow.status("raw/2") == "RESUBMIT"


@pytest.mark.parametrize("what", UNSTORABLE)
def test_an_unstorable_name_or_reason_is_refused(flow: Flow, what: str) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    text, verbs = UNSTORABLE[what], (hold, skip, resubmit, unhold)
    for verb in verbs:
        with refused(flow, OpenDataFlowError):
            verb(flow.ledger, [key("raw/1")], by=text)
        with refused(flow, OpenDataFlowError):
            verb(flow.ledger, [key("raw/1")], by="ada", reason=text)


def test_a_refused_name_does_not_make_the_next_call_fail(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    for name in BAD_NAMES.values():
        with pytest.raises(OpenDataFlowError):
            claim(flow.ledger, "load", name)
    assert claim(flow.ledger, "load", "1").dataid == "1"
    with pytest.raises(NoGo):
        claim(flow.ledger, "load", "1")
