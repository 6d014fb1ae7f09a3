"""Jobs and DataSets are removed from the registry: never under a running chunk, and the history stays."""

from __future__ import annotations

import pytest

from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.job import Policy
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.heal import heal
from tests.factories import Flow, job
from tests.invariants import assert_invariants
from tests.operator import Odf


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture
def run(flow: Flow) -> Odf:
    return Odf(url=flow.url)


def made(flow: Flow) -> None:
    """raw/1 and tidy/1 are READY, tidy/2 waits."""
    load, clean = flow.register(
        "load: -> raw", job("clean: raw -> tidy", Policy(ordered=True)), "report: tidy -> pages"
    )[:2]
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    flow.produce("clean", "1")
    flow.plan(clean, ["2"])
    flow.type("insert into dataflow.job (jobid, itemtype, itemvalue) values ('clean', 'MODE', 'fast')")


def count(flow: Flow, table: str, where: str) -> int:
    found = flow.psql.execute(f"select count(*) from dataflow.{table} where {where}".encode()).fetchone()
    assert found is not None
    return int(found[0])


def test_a_removed_job_runs_nothing_and_its_chunks_and_their_history_stay(flow: Flow, run: Odf) -> None:
    made(flow)
    run.text("pause", "clean")
    printed = run.text("job", "remove", "clean", "--as", "ada", "--reason", "moved")
    assert printed == "Removed job clean. Its chunks stay: tidy has 1 PENDING, 1 READY.\n"
    assert "job clean is not registered" in run.error("why", "clean")
    for table in ("job", "job_policy", "job_control", "runnable", "turn", "unsettled"):
        assert count(flow, table, "jobid = 'clean'") == 0, table
    assert flow.status("tidy/1") == "READY"
    assert [claim.dataid for claim in claim_next(flow.ledger, "report", 10)] == ["1"]
    removed = "relation = 'job' and name = 'clean' and after is null and actor = 'ada' and reason = 'moved'"
    assert count(flow, "registry_event", removed) == 3
    assert count(flow, "chunk_event", "datasetid = 'tidy' and jobid = 'clean'") >= 3
    healed = heal(flow.ledger, rebuild=True)
    assert (healed.added, healed.removed, healed.strays) == (0, 0, 0)
    assert_invariants(flow.psql)


def test_a_job_that_is_registered_again_takes_over_what_waits(flow: Flow, run: Odf) -> None:
    made(flow)
    run.text("job", "remove", "clean")
    run.text("job", "add", "tidying", "--in", "raw", "--out", "tidy")
    flow.plan(job("load: -> raw"), ["2"])
    flow.produce("load", "2")
    assert [claim.dataid for claim in claim_next(flow.ledger, "tidying", 10)] == ["2"]


@pytest.mark.parametrize("by", ["this system", "an upstream client"])
def test_a_job_with_a_running_chunk_is_not_removed(flow: Flow, run: Odf, by: str) -> None:
    made(flow)
    if by == "this system":
        claim(flow.ledger, "report", "1")
    else:
        flow.type("insert into dataflow.datastatus values ('pages', 'report', '1', 'OUT', 'RUNNING', now())")
    said = run.error("job", "remove", "report")
    assert "job report is making 1 chunk (pages/1); wait for it, or cancel it with: odf cancel pages 1" in said
    assert count(flow, "job", "jobid = 'report'") == 2
    run.text("cancel", "pages", "1")
    assert "Removed job report." in run.text("job", "remove", "report")


def test_a_dry_run_removes_nothing_and_says_what_it_would(flow: Flow, run: Odf) -> None:
    made(flow)
    assert "Would report: Removed job clean." in run.text("job", "remove", "clean", "--dry-run")
    assert count(flow, "job", "jobid = 'clean'") == 3
    run.text("job", "remove", "report")
    assert "Would report: Removed DataSet pages." in run.text("dataset", "remove", "pages", "--dry-run")
    assert count(flow, "dataset", "datasetid = 'pages'") == 1


def test_a_dataset_that_a_job_uses_is_not_removed(flow: Flow, run: Odf) -> None:
    made(flow)
    said = run.error("dataset", "remove", "tidy")
    assert "DataSet tidy is used by job clean (OUT), report (IN)" in said
    assert "odf job remove clean" in said
    assert count(flow, "dataset", "datasetid = 'tidy'") == 1


def test_a_dataset_with_chunks_is_removed_only_if_they_are_given_up(flow: Flow, run: Odf) -> None:
    flow.register(raw=flow.dataset("raw"))
    flow.register("load: -> raw")
    flow.plan(job("load: -> raw"), ["1", "2"])
    flow.produce("load", "1")
    run.text("job", "remove", "load")
    said = run.error("dataset", "remove", "raw")
    assert "DataSet raw has 2 chunks (1 PENDING, 1 READY); delete them too with --chunks" in said
    assert flow.status("raw/1") == "READY"
    result = run.json("dataset", "remove", "raw", "--chunks", "--as", "ada")
    assert (result["datasetid"], result["chunks"]) == ("raw", {"PENDING": 1, "READY": 1})
    assert count(flow, "dataset", "datasetid = 'raw'") == 0
    assert flow.status("raw/1") == "ABSENT"
    assert count(flow, "chunk_event", "datasetid = 'raw' and new_status is null and actor = 'ada'") == 2
    assert count(flow, "data_manifest", "datasetid = 'raw'") == 1
    assert_invariants(flow.psql)


def test_a_dataset_with_a_held_chunk_is_not_removed(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw")
    flow.plan(job("load: -> raw"), ["1"])
    run.text("hold", "raw", "1")
    run.text("job", "remove", "load")
    assert "raw/1 is on HOLD and cannot be deleted" in run.error("dataset", "remove", "raw", "--chunks", exit_code=131)
    assert count(flow, "dataset", "datasetid = 'raw'") == 1


def test_only_what_is_registered_can_be_removed(run: Odf) -> None:
    assert "job averge is not registered" in run.error("job", "remove", "averge")
    assert "DataSet delys is not registered" in run.error("dataset", "remove", "delys")


def test_an_operator_cannot_remove_from_the_registry(flow: Flow) -> None:
    made(flow)
    with flow.psql.transaction(force_rollback=True):
        flow.psql.execute("set local role dataflow_operator")
        for table in ("job", "job_policy", "dataset", "job_control"):
            assert flow.psql.execute("select has_table_privilege(%s, 'delete')", (f"dataflow.{table}",)).fetchone() == (
                False,
            ), table


def test_a_job_of_which_an_item_is_misspelt_can_be_removed(flow: Flow, run: Odf) -> None:
    flow.type("insert into dataflow.dataset (datasetid) values ('raw')")
    flow.type("insert into dataflow.job (jobid, itemtype, datasetid) values ('odd', 'in', 'raw')")
    assert "is used by job odd (in)" in run.error("dataset", "remove", "raw")
    assert run.text("job", "remove", "odd") == "Removed job odd.\n"
    assert run.text("dataset", "remove", "raw") == "Removed DataSet raw.\n"
    assert DatasetId("raw") not in run.text("status")
