"""Progress is of what is expected, the missing stands beside what it waits for, and `odf why` names every obstacle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from opendataflow_dagster.ledger import overview
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DataId, DatasetId
from opendataflow_dagster.model.job import ListedChunks
from opendataflow_dagster.model.partitions import Partitions, RangePartitions, StaticPartitions, TimePartitions
from opendataflow_dagster.protocol.claim import claim
from tests.factories import Flow, job
from tests.operator import Odf


def days_ago(count: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=count):%Y-%m-%d}"


def daily(days: int) -> TimePartitions:
    """So many days have ended."""
    return TimePartitions(kind="daily", first=days_ago(days))


def dataset(flow: Flow, name: str, partitions: Partitions | None = None) -> Dataset:
    return Dataset(datasetid=DatasetId(name), location=str(flow.root / name), partitions=partitions)


def of(run: Odf, name: str) -> Any:
    (found,) = [found for found in run.json("status")["datasets"] if found["datasetid"] == name]
    return found


@pytest.fixture
def run(emptied_flow: Flow) -> Odf:
    return Odf(url=emptied_flow.url)


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture
def started(flow: Flow) -> Flow:
    """12 days have ended; one day of the source was asked for, and made."""
    load, _ = flow.register(
        "load: -> raw",
        "clean: raw -> tidy",
        raw=dataset(flow, "raw", daily(12)),
        tidy=dataset(flow, "tidy", daily(12)),
    )
    flow.plan(load, [days_ago(12)])
    flow.produce("load", days_ago(12))
    flow.produce("clean", days_ago(12))
    return flow


# --- status


@pytest.mark.usefixtures("started")
def test_progress_is_of_the_expected_partitions_and_not_of_those_asked_for(run: Odf) -> None:
    for name in ("raw", "tidy"):
        found = of(run, name)
        assert (found["counts"], found["missing"], found["expected"]) == ({"READY": 1}, 11, 12)
        assert found["progress"] == pytest.approx(1 / 12)
    assert [line.split()[:4] for line in run.text("status").splitlines()[1:3]] == [
        ["raw", "1", "11", "8"],
        ["tidy", "1", "11", "8"],
    ]


@pytest.mark.usefixtures("started")
def test_next_to_missing_stands_what_it_waits_for(run: Odf) -> None:
    yesterday = days_ago(1)
    assert of(run, "tidy")["obstacle"] == {
        "dataid": yesterday,
        "code": "DATA_NOT_READY",
        "reason": f"raw/{yesterday} does not exist; run its producer or announce it",
    }
    assert of(run, "raw")["obstacle"]["code"] == "NOT_ASKED_FOR"
    printed = run.text("status")
    assert f"nobody has asked for load/{yesterday}; run its job for it" in printed
    assert f"raw/{yesterday} does not exist" in printed


def test_a_listed_chunk_that_nobody_asked_for_is_missing(flow: Flow, run: Odf) -> None:
    report = job("report: codes -> sums", codes=ListedChunks(lambda _: ["eu", "us"]))
    flow.register("make: -> codes", report)
    flow.plan(report, ["2024"])
    found = of(run, "codes")
    assert (found["missing"], found["progress"], found["obstacle"]["code"]) == (2, 0.0, "NOT_ASKED_FOR")
    assert "codes/eu does not exist" in of(run, "sums")["obstacle"]["reason"]
    assert "nobody has asked for make/eu" in run.text("why", "make", exit_code=1)


def test_what_a_planned_consumer_needs_is_missing_and_who_makes_it_is_said(flow: Flow, run: Odf) -> None:
    (clean,) = flow.register("clean: raw -> tidy")
    flow.plan(clean, ["1", "2"])
    flow.announce("raw/1")
    found = of(run, "raw")
    assert (found["missing"], found["progress"]) == (1, 0.5)
    assert found["obstacle"]["reason"] == "no job makes raw/2; announce it with: odf announce raw 2"


@pytest.mark.parametrize(
    ("partitions", "chunks", "missing"),
    [
        (daily(3), [3, 1], 1),
        (TimePartitions(kind="daily", first="2024-01-01", last="2024-01-03"), ["2024-01-02", "2024-01-04"], 2),
        (TimePartitions(kind="weekly", first="2024-01-01", last="2024-01-20"), ["2024-01-01", "2024-01-09"], 2),
        (TimePartitions(kind="monthly", first="2024-01-01", last="2024-03-01"), ["2024-01-01", "2024-01-02"], 2),
        (TimePartitions(kind="hourly", first="2024-01-01-00:00", last="2024-01-01-03:00"), ["2024-01-01-02:00"], 3),
        (TimePartitions(kind="daily", first="2999-01-01"), ["2999-01-01"], 0),
        (StaticPartitions(keys=(DataId("eu"), DataId("us"))), ["us", "uk"], 1),
        (RangePartitions(first=0, last=24, step=10), ["0-9", "10-14", "5-14", "20-24", "00-9", "x-y"], 1),
    ],
)
def test_only_a_chunk_of_a_past_partition_fills_it(
    flow: Flow, run: Odf, partitions: Partitions, chunks: list[int | str], missing: int
) -> None:
    flow.register("load: -> raw", raw=dataset(flow, "raw", partitions))
    for chunk in chunks:
        flow.announce(f"raw/{days_ago(chunk) if isinstance(chunk, int) else chunk}")
    found = of(run, "raw")
    assert found["missing"] == missing
    assert (found["obstacle"] is None) == (missing == 0)


def test_a_chunk_that_two_producers_have_a_row_of_fills_one_partition(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw", raw=dataset(flow, "raw", daily(3)))
    flow.announce(f"raw/{days_ago(3)}", jobid="one")
    flow.announce(f"raw/{days_ago(3)}", jobid="other")
    assert of(run, "raw")["missing"] == 2


def test_a_skipped_chunk_is_not_expected(flow: Flow, run: Odf) -> None:
    (load,) = flow.register("load: -> raw", raw=dataset(flow, "raw", daily(2)))
    flow.plan(load, [days_ago(2), days_ago(1)])
    run.text("skip", "raw", days_ago(2), "--reason", "a holiday")
    flow.produce("load", days_ago(1))
    found = of(run, "raw")
    assert (found["missing"], found["expected"], found["progress"]) == (0, 1, 1.0)


@pytest.mark.usefixtures("started")
def test_metrics_and_the_report_have_what_is_missing(run: Odf, tmp_path: Any) -> None:
    metrics = run.text("metrics")
    assert 'odf_missing_chunks{dataset="raw"} 11.0' in metrics
    assert 'odf_expected_chunks{dataset="raw"} 12.0' in metrics
    run.text("report", "-o", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert "8 % of 12 expected" in page
    assert f"raw/{days_ago(1)} does not exist" in page


# --- why


@pytest.mark.usefixtures("started")
def test_why_names_missing_chunks_of_an_input_that_nobody_asked_for(run: Odf) -> None:
    result = run.json("why", "clean", exit_code=1)
    assert (result["missing"], result["runnable"]) == (11, 0)
    (obstacle,) = result["obstacles"]
    assert (obstacle["code"], obstacle["count"]) == ("DATA_NOT_READY", 11)
    printed = run.text("why", "clean", exit_code=1)
    assert "does not exist; run its producer or announce it" in printed
    assert "Nothing blocks it" not in printed
    (obstacle,) = run.json("why", "load", exit_code=1)["obstacles"]
    assert (obstacle["code"], obstacle["count"]) == ("NOT_ASKED_FOR", 11)


def test_nothing_blocks_a_job_whose_expected_chunks_are_there_or_can_run(flow: Flow, run: Odf) -> None:
    load, _ = flow.register(
        "load: -> raw",
        "clean: raw -> tidy",
        raw=dataset(flow, "raw", daily(2)),
        tidy=dataset(flow, "tidy", daily(2)),
    )
    flow.plan(load, [days_ago(2), days_ago(1)])
    flow.produce("load", days_ago(2))
    flow.produce("load", days_ago(1))
    assert "Nothing blocks it" in run.text("why", "clean")
    assert of(run, "tidy")["obstacle"] == {"dataid": days_ago(1), "code": None, "reason": "it can run now"}
    flow.produce("clean", days_ago(2))
    flow.produce("clean", days_ago(1))
    assert "Nothing blocks it" in run.text("why", "clean")
    assert of(run, "tidy")["obstacle"] is None


def test_why_of_a_chunk_says_that_nobody_asked_for_it(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw", raw=dataset(flow, "raw", daily(2)))
    day = days_ago(1)
    assert (
        f"nobody has asked for load/{day}; run its job for it, or plan it with: odf plan load {day} --apply"
        in run.text("why", "load", day)
    )
    run.text("plan", "load", day, "--apply")
    assert "nobody has asked" not in run.text("why", "load", day)


def test_why_names_a_misspelt_item_of_the_job_table(flow: Flow, run: Odf) -> None:
    flow.register("clean: raw -> tidy", "other: codes -> sums")
    flow.type("insert into dataflow.job values ('clean', 'in', 'codes')")
    (obstacle,) = run.json("why", "clean", exit_code=1)["obstacles"]
    assert obstacle["code"] == "WRONG_DATA"
    assert "job clean has an item 'in' of DataSet codes, which is neither IN nor OUT" in obstacle["reason"]


def test_why_names_a_dataset_that_is_not_registered(flow: Flow, run: Odf) -> None:
    flow.register("clean: raw -> tidy")
    flow.type("insert into dataflow.job values ('clean', 'IN', 'wether')")
    assert "DataSet wether (IN of job clean) is not registered" in run.text("why", "clean", exit_code=1)
    # Once a chunk is planned, the overview names it, too.
    flow.type("insert into dataflow.datastatus values ('tidy', 'clean', '1', 'OUT', 'PENDING', now())")
    assert "DataSet wether is not registered, but a job reads it" in of(run, "wether")["obstacle"]["reason"]


def test_why_names_a_day_that_did_not_begin(flow: Flow, run: Odf) -> None:
    flow.register("clean: today -> tidy", today=Dataset(datasetid=DatasetId("today"), foreign_ready="trusted"))
    flow.type("delete from dataflow.datastatus where datasetid = 'today'")
    reasons = [obstacle["reason"] for obstacle in run.json("why", "clean", exit_code=1)["obstacles"]]
    assert f"today/{days_ago(0)} has not begun in the ledger; run: odf heal" in reasons
    run.text("heal")
    assert "Nothing blocks it" in run.text("why", "clean")


def test_why_names_in_rows_that_no_running_chunk_holds(flow: Flow, run: Odf) -> None:
    (load, _) = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    flow.produce("clean", "1")
    assert "Nothing blocks it" in run.text("why", "clean")
    flow.type("insert into dataflow.datastatus values ('raw', 'clean', '1', 'IN', 'RUNNING', now())")
    (obstacle,) = run.json("why", "clean", exit_code=1)["obstacles"]
    assert (obstacle["code"], obstacle["example"]) == ("LOCKED", "1")
    assert "no running chunk holds 1 IN row of job clean, such as that of raw/1" in obstacle["reason"]


def test_why_is_silent_about_in_rows_of_running_chunks(flow: Flow, run: Odf) -> None:
    (load, _) = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1", "2"])
    for dataid in ("1", "2"):
        flow.produce("load", dataid)
    claim(flow.ledger, "clean", "1")
    flow.type("insert into dataflow.datastatus values ('raw', 'clean', '2', 'IN', 'RUNNING', now())")
    flow.type("insert into dataflow.datastatus values ('tidy', 'clean', '2', 'OUT', 'RUNNING', now())")
    assert "Nothing blocks it" in run.text("why", "clean")


def test_why_names_chunks_that_are_not_evaluated_yet(flow: Flow, run: Odf) -> None:
    flow.register("clean: raw -> tidy")
    flow.announce("raw/1")
    flow.type("insert into dataflow.unsettled (jobid) values ('clean')")
    reasons = [obstacle["reason"] for obstacle in run.json("why", "clean", exit_code=1)["obstacles"]]
    assert "after a change of job clean, chunks are still to be evaluated; run: odf heal" in reasons


# --- the cost


def test_the_newest_missing_chunks_are_found_without_reading_the_others(flow: Flow) -> None:
    flow.register("load: -> raw", raw=dataset(flow, "raw", daily(3000)))
    with flow.ledger.statement() as statement:
        found = overview.newest_missing(statement, [DatasetId("raw")], 2)
    assert [key.dataid for key in found] == [days_ago(1), days_ago(2)]


def test_plan_does_not_call_a_job_finished_whose_expected_chunks_are_missing(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw", raw=dataset(flow, "raw", daily(3)))
    assert run.text("plan", "load").startswith("No chunk of job load waits to be made; to plan others, name them")
