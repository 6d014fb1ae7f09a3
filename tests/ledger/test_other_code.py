"""Changing the code of a DataSet is seen: which chunks the former code made. They are made again only by choice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opendataflow_dagster import sql_dataset
from opendataflow_dagster.engine.dataset_graph import build_graph, registry_of
from opendataflow_dagster.insight.drift import find_drift
from opendataflow_dagster.model.definition import Registry
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import made_by
from opendataflow_dagster.model.partitions import daily
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.transfer import import_declared
from tests.factories import Flow, job
from tests.operator import Odf

DAYS = tuple(f"2024-01-{number:02}" for number in range(1, 11))


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture
def run(flow: Flow) -> Odf:
    return Odf(url=flow.url)


def declare(flow: Flow, code_version: str | None) -> None:
    """As a code location does when it loads."""
    declared = replace(flow.dataset("prices"), partitions=daily(DAYS[0], DAYS[-1]), code_version=code_version)
    register(flow.ledger, [declared], [job("price: -> prices")])


def make(flow: Flow, dataid: str, code_version: str | None, jobid: str = "price") -> None:
    taken = claim(flow.ledger, jobid, dataid)
    publish(flow.ledger, taken, made_by(code_version, {DatasetId("prices"): flow.manifest(taken)}))


@pytest.fixture
def changed(flow: Flow) -> Flow:
    """Code 3 is current; code 1, 2 or 3 made the chunks, and of one it is unknown."""
    declare(flow, "1")
    for day, code in zip(DAYS, ("1", "1", "1", "2", None, "1", "3"), strict=False):
        make(flow, day, code)
    declare(flow, "3")
    return flow


def ranges(found: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(line["dataids"], line["chunks"], line["code_version"], line["current_code"]) for line in found]


BY_OTHER_CODE = [
    ("2024-01-01..2024-01-03", 3, "1", "3"),
    ("2024-01-04", 1, "2", "3"),
    ("2024-01-06", 1, "1", "3"),
]


def test_changing_the_code_of_a_dataset_is_seen_in_every_view_of_its_chunks(changed: Flow, run: Odf) -> None:
    (status,) = run.json("status")["datasets"]
    assert (status["other_code"], status["counts"]) == (5, {"READY": 7})
    assert "Other code: READY chunks made by other code than the current" in run.text("status")
    assert "7 chunks, 7 READY; 5 made by other code" in run.text("chunks", "prices")
    assert "made by other code" in run.text("chunks", "prices", "--list")
    assert "made by other code (2) than the current (3); resubmit it to rebuild it" in run.text(
        "chunk", "show", "prices", DAYS[3]
    )
    assert 'odf_other_code_chunks{dataset="prices"} 5.0' in run.text("metrics")


def test_a_plan_lists_the_ranges_that_other_code_made(changed: Flow, run: Odf) -> None:
    assert ranges(run.json("plan", "price")["other_code"]) == BY_OTHER_CODE
    shown = run.text("plan", "price", DAYS[3], DAYS[6])
    assert "it is finished, made by other code than the current (2); resubmit it to produce it again" in shown
    assert "2024-01-01..2024-01-03" in shown
    assert "odf resubmit DATASET DATAIDS --other-code" in shown


def in_code(flow: Flow, query: str) -> Registry:
    """What a code location declares whose DataSet is this query."""
    prices = sql_dataset(query, "prices", partitions=daily(DAYS[0], DAYS[-1]))
    return registry_of([build_graph([prices], str(flow.root))])


def test_a_check_lists_what_edited_code_leaves_behind_before_it_is_registered(flow: Flow) -> None:
    before = in_code(flow, "select 1 as id")
    import_declared(flow.ledger, before)
    code = before.datasets[0].dataset.code_version
    for day in DAYS[:3]:
        flow.plan(before.jobs[0], [day])
        make(flow, day, code, "prices")
    assert find_drift(flow.ledger, in_code(flow, "SELECT 1 AS id -- the same")).other_code == ()

    after = in_code(flow, "select 2 as id")
    compared = find_drift(flow.ledger, after)
    (found,) = compared.other_code
    assert (found.dataids, found.chunks, found.code_version) == ("2024-01-01..2024-01-03", 3, code)
    assert found.current_code == after.datasets[0].dataset.code_version
    assert [finding.name for finding in compared.findings if "code_version" not in finding.detail] == []
    # Once it is registered, nothing is left to do; the chunks stay as they are, and are still listed.
    import_declared(flow.ledger, after)
    compared = find_drift(flow.ledger, after)
    assert [finding.detail for finding in compared.findings if "root" not in finding.step] == []
    assert len(compared.other_code) == 1


def test_current_and_unknown_code_is_never_other_code(changed: Flow, run: Odf) -> None:
    assert [chunk["dataid"] for chunk in run.json("chunks", "prices", "--other-code")["chunks"]] == [*DAYS[:4], DAYS[5]]
    # The ledger does not know what the code is: nothing is said of any chunk.
    changed.psql.execute("update dataflow.dataset set code_version = null")
    assert run.json("status")["datasets"][0]["other_code"] == 0
    assert run.json("plan", "price")["other_code"] == []


def test_chunks_of_other_code_stay_ready_until_a_range_of_them_is_resubmitted(changed: Flow, run: Odf) -> None:
    assert all(changed.status(f"prices/{day}") == "READY" for day in DAYS[:7])
    done = run.json("resubmit", "prices", "2024-01-03..2024-01-07", "--other-code", "--reason", "rounding fixed")
    assert [chunk["dataid"] for chunk in done["chunks"]] == [DAYS[2], DAYS[3], DAYS[5]]
    assert {day: changed.status(f"prices/{day}") for day in DAYS[:7]} == {
        day: "RESUBMIT" if day in (DAYS[2], DAYS[3], DAYS[5]) else "READY" for day in DAYS[:7]
    }
    for day in (DAYS[2], DAYS[3], DAYS[5]):
        make(changed, day, "3")
    assert ranges(run.json("plan", "price")["other_code"]) == [("2024-01-01..2024-01-02", 2, "1", "3")]
    assert "no chunk matches" in run.error("resubmit", "prices", DAYS[2], "--other-code")


def test_a_list_of_many_ranges_is_cut_and_says_how_many_there_are(changed: Flow, run: Odf) -> None:
    changed.psql.execute("update dataflow.dataset set partitions = null")
    for number in range(1, 62):
        make(changed, str(number), "3" if number % 2 else "1")
    found = run.json("plan", "price")["other_code"]
    assert len(found) == 20
    assert {(line["ranges"], line["all_chunks"]) for line in found} == {(33, 35)}
    # In natural order: 2 comes before 10.
    assert [line["first"] for line in found][:3] == ["2", "4", "6"]
    assert "prices has 13 more such ranges, 35 chunks in all." in run.text("plan", "price")
