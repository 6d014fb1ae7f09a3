"""An existing upstream database becomes ours in place: its rows stay, and its own clients go on."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from opendataflow_dagster.ledger import schema
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.ledger.schema_files import wanted
from opendataflow_dagster.model.errors import InvalidDefinition
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.publish import publish
from tests.ledger.test_schema import catalog
from tests.ledger.test_upstream import upstream_client

#: The tables as upstream's `createtables` makes them, and as its older scripts did, with keys.
DDL = {
    "today's": """
        create table job (jobid varchar, itemtype varchar, datasetid varchar, itemvalue varchar, modified timestamp);
        create table dataset (datasetid varchar, hostname varchar, database varchar, schemaname varchar,
                              tablename varchar, username varchar, encryptedpass varchar);
        create index x_dataset on dataset (datasetid);""",
    "with keys": """
        create table job (jobid varchar, itemtype varchar, datasetid varchar, itemvalue varchar, modified timestamp,
                          primary key (datasetid, jobid));
        create table dataset (datasetid varchar primary key, hostname varchar, database varchar, schemaname varchar,
                              tablename varchar, username varchar, encryptedpass varchar, modified timestamp);""",
}
STATUS = """
    create table datastatus (datasetid varchar, jobid varchar, dataid varchar, locktype varchar, status varchar,
                             modified timestamp, primary key (datasetid, jobid, dataid))"""
ROWS = """
    insert into dataset (datasetid, hostname, encryptedpass)
    values ('bobin', 'db1', 'bWyH69XYondjzPYw6rQMJmvFIKq4GP91904Ie8EtBSvUV8Sk'),
           ('bobout', null, null),
           ('pages', null, null);
    insert into job (jobid, itemtype, datasetid, modified)
    values ('loadbob', 'IN', 'bobin', '2024-01-01 10:00'),
           ('loadbob', 'OUT', 'bobout', '2024-01-01 10:00'),
           ('print', 'IN', 'bobout', '2024-01-01 10:00'),
           ('print', 'OUT', 'pages', null);
    insert into datastatus
    values ('bobin', 'extract', '1.0', 'OUT', 'READY', '2024-01-02 08:00'),
           ('bobin', 'extract', '1.1', 'OUT', 'READY', '2024-01-02 09:00'),
           ('bobin', 'extract', '1.2', 'OUT', 'odd', null),
           ('bobout', 'loadbob', '1.0', 'OUT', 'READY', '2024-01-02 08:30'),
           ('bobin', 'loadbob', '1.1', 'IN', 'RUNNING', '2024-01-02 10:00'),
           ('bobout', 'loadbob', '1.1', 'OUT', 'RUNNING', '2024-01-02 10:00')"""


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True, options="-c search_path=dataflow") as connection:
        for statement in statements:
            connection.execute(statement.encode())


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, options="-c search_path=dataflow") as connection:
        return connection.execute(statement.encode()).fetchall()


@pytest.fixture(params=DDL)
def upstream_url(empty_url: str, request: pytest.FixtureRequest) -> str:
    run(empty_url, "create schema dataflow", DDL[request.param], STATUS, ROWS)
    return empty_url


@pytest.fixture
def todays_url(empty_url: str) -> str:
    run(empty_url, "create schema dataflow", DDL["today's"], STATUS, ROWS)
    return empty_url


def install(url: str) -> tuple[str, ...]:
    with Ledger(url) as ledger:
        return schema.install(ledger)


EVERY_ROW = {
    "job": "select jobid, itemtype, datasetid, itemvalue, modified from job",
    "dataset": "select datasetid, hostname, database, schemaname, tablename, username, encryptedpass from dataset",
    "datastatus": "select datasetid, jobid, dataid, locktype, status, modified::timestamp from datastatus",
}


def test_an_upstream_database_is_upgraded_with_every_row_and_its_time(upstream_url: str, template: str) -> None:
    before = {name: set(rows(upstream_url, query)) for name, query in EVERY_ROW.items()}
    applied = install(upstream_url)
    assert applied == ("adopt_upstream", *wanted())
    assert install(upstream_url) == ()
    assert {row[:6] for row in rows(upstream_url, EVERY_ROW["dataset"])} == {row[:6] for row in before["dataset"]}
    after = rows(upstream_url, EVERY_ROW["datastatus"])
    known = {row for row in before["datastatus"] if row[5] is not None}
    assert known <= set(after)
    assert len(after) == len(before["datastatus"])
    assert len(rows(upstream_url, EVERY_ROW["job"])) == len(before["job"])
    assert rows(upstream_url, "select modified::timestamp::text from job where datasetid = 'bobin'") == [
        ("2024-01-01 10:00:00",)
    ]
    fresh = catalog(make_conninfo("", **{**conninfo_to_dict(upstream_url), "dbname": template}))
    assert catalog(upstream_url) == fresh


def test_what_upstream_left_is_ready_running_and_locked_as_it_was(todays_url: str) -> None:
    install(todays_url)
    with Ledger(todays_url) as ledger:
        assert [claim.dataid for claim in claim_next(ledger, "print")] == ["1.0"], (
            "READY without a manifest, and trusted"
        )
        assert claim_next(ledger, "loadbob", 10) == [], "1.0 is over, 1.1 runs at upstream, 1.2 has an unknown status"
        run(todays_url, "update datastatus set status='RESUBMIT' where datasetid='bobout' and dataid='1.1'")
        taken = claim(ledger, "loadbob", "1.1")
        publish(ledger, taken, NewManifest(location="elsewhere"))
        healed = heal(ledger, rebuild=True)
    assert (healed.added, healed.removed, healed.strays) == (0, 0, 0)
    history = rows(
        todays_url, "select new_status from chunk_event where datasetid = 'bobout' and dataid = '1.1' order by event_id"
    )
    assert history == [("RUNNING",), ("RESUBMIT",), ("RUNNING",), ("READY",)]


def test_a_resubmit_that_upstream_left_with_the_in_row_of_a_crash_runs_for_both(todays_url: str) -> None:
    run(todays_url, "update datastatus set status = 'RESUBMIT' where datasetid = 'bobout' and dataid = '1.1'")
    install(todays_url)
    assert rows(todays_url, "select datasetid from datastatus where locktype = 'IN'") == []
    with upstream_client(todays_url) as client:
        assert client.next_chunk("loadbob") == "1.1"
    with Ledger(todays_url) as ledger:
        assert [claim.dataid for claim in claim_next(ledger, "loadbob")] == ["1.1"]


def test_upstreams_own_client_goes_on_after_the_upgrade(upstream_url: str) -> None:
    install(upstream_url)
    with upstream_client(upstream_url) as client:
        assert client.claim_next("print") == "1.0"
        client.end("print", "1.0")
        client.end("loadbob", "1.1")
        client.register("later", inputs="pages", outputs="mail")
        assert client.claim_next("later") == "1.0"
        assert client.run("insert into datastatus values ('bobin', 'extract', '1.3', 'OUT', 'READY', now())") == 1
        assert client.claim_next("loadbob") == "1.3"


@pytest.fixture
def etl(todays_url: str) -> Iterator[str]:
    """Upstream's tables belong to its own login, and the owner of the database upgrades them."""
    run(
        todays_url,
        "create role etl_of_upstream login password 'secret'",
        "grant usage, create on schema dataflow to etl_of_upstream",
        *(f"alter table {name} owner to etl_of_upstream" for name in ("job", "dataset", "datastatus")),
    )
    yield make_conninfo("", **{**conninfo_to_dict(todays_url), "user": "etl_of_upstream", "password": "secret"})
    run(todays_url, "drop owned by etl_of_upstream", "drop role etl_of_upstream")


def test_a_login_that_owned_upstreams_tables_works_as_before(todays_url: str, etl: str) -> None:
    install(todays_url)
    with upstream_client(etl) as client:
        assert client.claim_next("print") == "1.0"
        client.end("print", "1.0")
        assert client.run("delete from datastatus where dataid = '1.2'") == 1
        assert client.run("update dataset set hostname = 'db2' where datasetid = 'bobin'") == 1
        client.register("later", inputs="pages", outputs="mail")
        assert client.claim_next("later") == "1.0"
        for statement in (
            "update datastatus set claim_id = 77",
            "create trigger t before update on datastatus for each row"
            " execute function suppress_redundant_updates_trigger()",
            "create function dataflow.mine() returns int language sql return 1",
            "truncate datastatus",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                client.run(statement)


def test_the_printed_script_upgrades_an_upstream_database_too(todays_url: str) -> None:
    with psycopg.connect(todays_url, autocommit=True) as connection:
        connection.execute(schema.script().encode())
    assert rows(todays_url, "select count(*) from datastatus") == [(6,)]
    assert install(todays_url) == ()


def test_today_of_upstream_has_the_day_of_the_server_and_is_ready(empty_url: str) -> None:
    run(
        empty_url,
        "create schema dataflow",
        DDL["today's"],
        STATUS,
        "insert into dataset (datasetid) values ('news')",
        "insert into job (jobid, itemtype, datasetid) values ('pull', 'IN', 'today'), ('pull', 'OUT', 'news')",
    )
    install(empty_url)
    with Ledger(empty_url) as ledger:
        (taken,) = claim_next(ledger, "pull")
    assert rows(empty_url, "select current_date::text") == [(taken.dataid,)]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("insert into job values ('other', 'OUT', 'bobout')", "DataSet bobout has two producers, loadbob and other"),
        ("insert into dataset values ('bobin', 'db2')", "DataSet bobin has 2 rows that differ"),
        ("insert into dataset values (E'a\\nb')", "the DataSet name 'a b' cannot be used"),
        ("insert into job values ('x', 'IN', null)", "the item 'IN' of job 'x' has no name or no DataSet"),
        ("insert into datastatus values ('raw', 'x', '1', 'both', 'READY')", "locktype ('both')"),
        ("insert into job values ('back', 'IN', 'pages'), ('back', 'OUT', 'bobin')", "made from themselves"),
        ("alter table job add comment varchar", "its column comment"),
        ("create view failed as select * from datastatus", "the view dataflow.failed"),
    ],
)
def test_what_cannot_be_adopted_is_named_and_upstreams_tables_stay_as_they_were(
    todays_url: str, statement: str, said: str
) -> None:
    run(todays_url, statement)
    before = {name: rows(todays_url, f"select * from {name}") for name in EVERY_ROW}
    with pytest.raises(InvalidDefinition) as refused:
        install(todays_url)
    assert said in " ".join(str(refused.value).split())
    assert {name: rows(todays_url, f"select * from {name}") for name in EVERY_ROW} == before
    assert rows(todays_url, "select to_regclass('dataflow.runnable'), to_regclass('dataflow.migration')") == [
        (None, None)
    ]


def test_rows_that_upstream_has_twice_are_there_once(todays_url: str) -> None:
    run(
        todays_url,
        "insert into dataset select * from dataset",
        "insert into job select * from job",
        "insert into job values ('loadbob', 'colour', '', 'blue'), ('loadbob', 'colour', null, 'blue')",
    )
    install(todays_url)
    assert rows(todays_url, "select count(*) from dataset") == [(3,)]
    assert rows(todays_url, "select itemtype, datasetid, itemvalue from job where jobid = 'loadbob' order by 1") == [
        ("IN", "bobin", None),
        ("OUT", "bobout", None),
        ("colour", None, "blue"),
    ]
