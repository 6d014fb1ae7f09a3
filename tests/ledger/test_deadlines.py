"""Deadlines: which chunks are late and which DataSets lack new data, and who says so."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from opendataflow_dagster import daily, external_dataset, hourly, monthly, sql_dataset, static, weekly
from opendataflow_dagster.insight.deadlines import Deadlines, Freshness, find_deadlines
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import InvalidDefinition
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.partitions import Partitions
from opendataflow_dagster.protocol.register import register
from tests.factories import Flow, job
from tests.operator import Odf


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture
def run(flow: Flow) -> Odf:
    return Odf(url=flow.url)


def days_ago(flow: Flow, number: int) -> str:
    row = flow.psql.execute("select ((now() at time zone 'UTC')::date - %s)::text", [number]).fetchone()
    assert row is not None
    return str(row[0])


def declare(flow: Flow, **deadlines: object) -> None:
    """Daily since ten days ago."""
    declared = Dataset(
        datasetid=DatasetId("prices"),
        location=str(flow.root / "prices"),
        partitions=daily(days_ago(flow, 10)),
        **deadlines,  # type: ignore[arg-type]
    )
    register(flow.ledger, [declared], [job("price: -> prices")])


def late(flow: Flow) -> dict[str, str | None]:
    return {chunk.dataid: chunk.status for chunk in find_deadlines(flow.ledger).late}


# --- by a time


@pytest.mark.parametrize(
    ("partitions", "by", "now", "expected"),
    [
        (daily("2024-01-01"), "06:00", "2024-01-02 05:59", {}),
        (daily("2024-01-01"), "06:00", "2024-01-02 06:00", {"2024-01-01": "2024-01-02 06:00"}),
        (
            daily("2024-01-01"),
            "23:59",
            "2024-01-04 00:00",
            {"2024-01-02": "2024-01-03 23:59", "2024-01-01": "2024-01-02 23:59"},
        ),
        (weekly("2024-01-03"), "06:00", "2024-01-10 06:00", {"2024-01-03": "2024-01-10 06:00"}),
        (weekly("2024-01-03"), "06:00", "2024-01-10 05:00", {}),
        (monthly("2024-01-01"), "06:00", "2024-03-20 00:00", {"2024-02-01": "2024-03-01 06:00"}),
        (
            hourly("2024-01-01-00:00"),
            "02:20",
            "2024-01-01 04:20",
            {"2024-01-01-01:00": "2024-01-01 04:20", "2024-01-01-00:00": "2024-01-01 03:20"},
        ),
        (daily("2024-01-01", "2024-01-05"), "06:00", "2024-06-01 12:00", {}),
    ],
)
def test_a_chunk_is_due_at_its_time_after_the_end_of_its_partition(
    flow: Flow, partitions: Partitions, by: str, now: str, expected: dict[str, str]
) -> None:
    rows = flow.psql.execute(
        "select dataid, to_char(due, 'YYYY-MM-DD HH24:MI') from dataflow.deadlines(%s, %s, %s)",
        [json.dumps(partitions.to_json()), by, now],
    ).fetchall()
    assert dict(rows) == expected


def test_a_missed_deadline_is_shown_for_seven_days_and_the_newest_for_longer(flow: Flow) -> None:
    def due(partitions: Partitions, now: str) -> list[str]:
        rows = flow.psql.execute(
            "select dataid from dataflow.deadlines(%s, '06:00', %s)", [json.dumps(partitions.to_json()), now]
        )
        return [row[0] for row in rows]

    assert due(daily("1995-01-01"), "2024-03-01 12:00") == [
        "2024-02-29",
        *(f"2024-02-{number}" for number in range(28, 22, -1)),
    ]
    assert due(monthly("1995-01-01"), "2024-03-31 12:00") == ["2024-02-01"]
    assert len(due(hourly("1995-01-01-00:00"), "2024-03-01 12:00")) == 7 * 24


def test_a_chunk_is_late_until_it_is_ready_or_skipped(flow: Flow) -> None:
    declare(flow, expected_by="00:01")
    yesterday, before = days_ago(flow, 1), days_ago(flow, 2)
    assert late(flow) == {days_ago(flow, number): None for number in range(1, 8)}
    flow.produce("price", yesterday)
    flow.type("insert into dataflow.datastatus values ('prices', 'price', %s, 'OUT', 'FAILED', now())", before)
    assert yesterday not in late(flow)
    assert late(flow)[before] == "FAILED"
    flow.type("update dataflow.datastatus set status = 'SKIPPED' where dataid = %s", before)
    assert before not in late(flow)
    # It was made, and is to be made again: its consumers wait for it.
    flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = %s", yesterday)
    assert late(flow)[yesterday] == "RESUBMIT"


def test_a_deadline_is_in_the_time_zone_of_the_dataset(flow: Flow) -> None:
    declare(flow, expected_by="06:00", timezone="Europe/Berlin")
    (newest, *_) = find_deadlines(flow.ledger).late
    following = datetime.fromisoformat(newest.dataid) + timedelta(days=1)
    row = flow.psql.execute(
        "select %s::timestamptz = (%s::timestamp + interval '6 hours') at time zone 'Europe/Berlin'",
        [newest.due, following],
    ).fetchone()
    assert row == (True,)


# --- within a time


def test_a_dataset_is_fresh_for_so_long_after_its_newest_ready_chunk(flow: Flow) -> None:
    declare(flow, fresh_within=timedelta(hours=26))
    (found,) = find_deadlines(flow.ledger).freshness
    assert (found.newest, found.is_fresh) == (None, False)
    flow.produce("price", days_ago(flow, 3))
    (found,) = find_deadlines(flow.ledger).freshness
    assert found.is_fresh
    assert found.newest is not None
    assert found.due == found.newest + timedelta(hours=26)
    assert replace(found, age=timedelta(hours=26)).is_fresh
    assert not replace(found, age=timedelta(hours=26, seconds=1)).is_fresh
    flow.type("update dataflow.datastatus set status = 'RESUBMIT'")
    assert not find_deadlines(flow.ledger).freshness[0].is_fresh


# --- who says so


def test_status_metrics_and_report_say_what_is_late(flow: Flow, run: Odf) -> None:
    declare(flow, expected_by="00:01", fresh_within=timedelta(hours=26))
    flow.type(
        "insert into dataflow.datastatus values ('prices', 'price', %s, 'OUT', 'FAILED', now())", days_ago(flow, 1)
    )
    shown = run.text("status")
    assert "Late\n" in shown
    assert f"{days_ago(flow, 1)} is FAILED and 6 earlier chunks" in shown
    assert "no data yet, expected within 26 h" in shown or "no data yet, expected within 1 d" in shown
    assert run.json("status")["deadlines"]["late"][0] == {
        "datasetid": "prices",
        "dataid": days_ago(flow, 1),
        "status": "FAILED",
        "due": f"{days_ago(flow, 0)}T00:01:00+00:00",
    }
    page = run.text("report", "-o", "-")
    assert "1 DataSet late" in page
    assert f"{days_ago(flow, 1)} is FAILED and 6 earlier chunks" in page
    assert len(run.json("report")["glance"]["deadlines"]["late"]) == 7
    metrics = run.text("metrics")
    assert 'odf_late_chunks{dataset="prices"} 7.0' in metrics
    assert 'odf_freshness_limit_seconds{dataset="prices"} 93600.0' in metrics
    flow.produce("price", days_ago(flow, 2))
    assert 'odf_freshness_seconds{dataset="prices"}' in run.text("metrics")
    assert "no data yet" not in run.text("status")
    # The figures of the overview and the statement of its own agree.
    (shown_freshness,) = run.json("status")["deadlines"]["freshness"]
    (found,) = find_deadlines(flow.ledger).freshness
    assert found.newest is not None
    assert datetime.fromisoformat(shown_freshness["newest"]) == found.newest


def test_a_ledger_without_missed_deadlines_says_nothing_of_them(flow: Flow, run: Odf) -> None:
    declare(flow)
    assert "Late" not in run.text("status")
    assert run.json("status")["deadlines"] == {"late": [], "freshness": []}
    assert run.text("digest") == "No failures.\n"


def test_a_digest_tells_each_missed_deadline_once(flow: Flow, run: Odf) -> None:
    declare(flow, expected_by="00:01")
    digest = run.json("digest", "--since", "2d")
    assert [chunk["dataid"] for chunk in digest["late"]] == [days_ago(flow, 1), days_ago(flow, 2)]
    assert digest["subject"] == "1 DataSet late"
    assert f"- late: prices, {days_ago(flow, 1)} is missing and 1 earlier chunk, since" in digest["text"]
    # Deadlines alone are news, too.
    assert "Subject: odf: 1 DataSet late" in run.text("digest", "--since", "2d", "--mail", "ops@example.com")
    assert run.text("digest", "--since", "2d", "--webhook", "--dry-run").startswith("1 DataSet late\n- late: prices")
    due = datetime.fromisoformat(digest["late"][0]["due"])
    after = (due + timedelta(seconds=1)).astimezone(UTC).isoformat()
    assert run.json("digest", "--since", after)["late"] == []


def test_the_status_of_a_foreign_client_reaches_no_terminal_and_no_message_raw(flow: Flow, run: Odf) -> None:
    declare(flow, expected_by="00:01")
    flow.type(
        "insert into dataflow.datastatus values ('prices', 'someone', %s, 'OUT', %s, now())",
        days_ago(flow, 1),
        "odd\x1b[2J",
    )
    for command in ("status", "digest"):
        words = (command,) if command == "status" else (command, "--since", "2d")
        shown = run.text(*words)
        assert f"{days_ago(flow, 1)} is odd" in shown
        assert "\x1b" not in shown


def test_what_became_late_in_a_time_is_what_a_digest_of_that_time_tells() -> None:
    now = datetime(2024, 1, 2, tzinfo=UTC)
    old = Freshness(
        datasetid=DatasetId("old"),
        fresh_within=timedelta(hours=1),
        newest=now - timedelta(hours=5),
        age=timedelta(hours=5),
    )
    assert Deadlines(freshness=(old,)).missed(now - timedelta(hours=5), now).freshness == (old,)
    assert Deadlines(freshness=(old,)).missed(now - timedelta(hours=4), now).freshness == ()


# --- what may be declared


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expected_by": "6 am"}, "from 00:01 to 23:59"),
        ({"expected_by": "24:00"}, "from 00:01 to 23:59"),
        ({"expected_by": "00:00"}, "from 00:01 to 23:59"),
        ({"expected_by": "06:00", "partitions": static("a")}, "expected_by needs hourly, daily, weekly or monthly"),
        ({"expected_by": "06:00", "partitions": None}, "expected_by needs hourly, daily, weekly or monthly"),
        ({"fresh_within": timedelta(seconds=59)}, "it must be 1 minute to 366 days"),
        ({"fresh_within": timedelta(days=367)}, "it must be 1 minute to 366 days"),
    ],
)
def test_a_deadline_that_cannot_be_kept_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        Dataset(datasetid=DatasetId("prices"), **{"partitions": daily("2024-01-01"), **options})  # type: ignore[arg-type]


def test_a_deadline_of_the_wrong_type_is_refused_where_it_is_declared() -> None:
    with pytest.raises(InvalidDefinition, match="fresh_within is 26; give a timedelta"):
        sql_dataset("select 1 as id", "prices", fresh_within=26)  # type: ignore[arg-type]
    with pytest.raises(InvalidDefinition, match="expected_by is 6; give a time"):
        external_dataset("landing", expected_by=6)  # type: ignore[arg-type]


def test_deadlines_are_exported_imported_shown_and_set(flow: Flow, run: Odf) -> None:
    declare(flow, expected_by="06:00", fresh_within=timedelta(hours=26))
    exported = run.text("dataset", "export", "prices")
    (entry,) = json.loads(exported)["datasets"]
    assert (entry["expected_by"], entry["fresh_within"]) == ("06:00", 93600.0)
    run.text("dataset", "set", "prices", "--expected-by", "07:30", "--fresh-within", "")
    shown = run.json("dataset", "show", "prices")
    assert (shown["expected_by"], shown["fresh_within"]) == ("07:30", None)
    assert "expected_by: 06:00 -> 07:30" in run.text("dataset", "show", "prices")
    assert json.loads(run("dataset", "import", "-", "--json", stdin=exported).stdout)["changed"] == ["dataset prices"]
    assert run.json("dataset", "show", "prices")["fresh_within"] == 93600.0
    assert "from 00:01 to 23:59" in run.error("dataset", "set", "prices", "--expected-by", "dawn")
