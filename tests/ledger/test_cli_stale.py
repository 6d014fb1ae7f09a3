"""A stale chunk is seen on every screen of the terminal, and `odf refresh` makes exactly the stale ones again."""

from __future__ import annotations

import pytest

from opendataflow_dagster.cli.heatmap import LETTERS
from opendataflow_dagster.model.job import ALL, Policy
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.factories import Flow, job, key
from tests.invariants import assert_invariants
from tests.operator import Odf

CHAIN = ("load: -> raw", "clean: raw -> tidy", "total: tidy -> sums", "print: sums -> pages")


@pytest.fixture
def run(flow: Flow) -> Odf:
    return Odf(url=flow.url)


@pytest.fixture
def stale(flow: Flow) -> Flow:
    """raw/1 is at version 2; what was made from version 1 was not rebuilt. raw/2 is as it was."""
    flow.register(*CHAIN)
    for dataid in ("1", "2"):
        for jobid in ("load", "clean", "total", "print"):
            flow.produce(jobid, dataid)
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    flow.produce("load", "1")
    return flow


def words(text: str) -> str:
    """Tables wrap where the terminal is narrow."""
    return " ".join(text.split())


@pytest.mark.usefixtures("stale")
def test_the_first_screen_shows_stale_chunks_beside_the_ready_ones(run: Odf) -> None:
    printed = run.text("status")
    (header,) = (line.split() for line in printed.splitlines() if line.startswith("DATASET"))
    (tidy,) = (line.split() for line in printed.splitlines() if line.startswith("tidy"))
    assert header[1:3] == ["READY", "stale"]
    assert tidy[1:3] == ["2", "1"]
    assert "3 READY chunks are stale: an input has a newer version. Why: odf stale." in words(printed)
    assert {dataset["datasetid"]: dataset["stale"] for dataset in run.json("status")["datasets"]} == {
        "raw": 0,
        "tidy": 1,
        "sums": 1,
        "pages": 1,
    }


@pytest.mark.usefixtures("stale")
def test_stale_lists_the_cause_the_person_and_what_is_further_down(run: Odf) -> None:
    found = run.json("stale")
    assert found["stale"] == 3
    tidy, pages, sums = found["chunks"]
    assert (tidy["key"], tidy["is_direct"], tidy["used"], tidy["current"], tidy["by"], tidy["below"]) == (
        {"datasetid": "tidy", "dataid": "1"},
        True,
        1,
        2,
        tidy["by"],
        2,
    )
    assert tidy["by"]
    assert sums["cause"] == {"datasetid": "tidy", "dataid": "1"}
    assert pages["root"] == sums["root"] == tidy["root"] == {"datasetid": "raw", "dataid": "1"}
    assert (sums["below"], pages["below"]) == (1, 0)
    assert run.json("stale", "sums")["stale"] == 1
    assert len(run.json("stale", "--count", "1")["chunks"]) == 1
    printed = words(run.text("stale"))
    assert "made from version 1 of raw/1, which is now at version 2" in printed
    assert "made from tidy/1, which is stale because of raw/1" in printed
    assert "there is no" in run.error("stale", "tody") or "not registered" in run.error("stale", "tody")


@pytest.mark.usefixtures("stale")
def test_chunks_show_which_are_stale(run: Odf) -> None:
    assert f"{LETTERS['stale']}{LETTERS['READY']}" in run.text("chunks", "tidy")
    assert "1 stale" in run.text("chunks", "tidy")
    (listed,) = run.json("chunks", "tidy", "--stale")["chunks"]
    assert (listed["dataid"], listed["status"], listed["is_stale"]) == ("1", "READY", True)
    assert "stale" in run.text("chunks", "tidy", "--list")


@pytest.mark.usefixtures("stale")
def test_why_and_chunk_show_name_the_cause(run: Odf) -> None:
    cause = "made from version 1 of raw/1, which is now at version 2"
    assert "1 chunk of tidy is stale, since" in words(run.text("why", "clean"))
    assert cause in words(run("why", "clean", "1").stdout)
    assert cause in words(run.text("chunk", "show", "tidy", "1"))
    assert "2 stale chunks further down" in words(run.text("chunk", "show", "tidy", "1"))
    assert "made from tidy/1, which is stale because of raw/1" in words(run.text("chunk", "show", "sums", "1"))


@pytest.mark.usefixtures("stale")
def test_metrics_digest_and_report_count_stale_chunks(run: Odf, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert 'odf_stale_chunks{dataset="tidy"} 1.0' in run.text("metrics")
    assert 'odf_stale_chunks{dataset="raw"} 0.0' in run.text("metrics")
    assert run.json("digest")["stale"] == 3
    assert "3 stale chunks in pages, sums, tidy: odf stale" in words(run.text("digest"))
    page = tmp_path_factory.mktemp("report") / "report.html"
    run.text("report", "--output", str(page))
    assert "READY, of old inputs" in page.read_text()


@pytest.mark.usefixtures("stale")
def test_refresh_makes_each_chunk_of_a_chain_once_and_nothing_else(flow: Flow, run: Odf) -> None:
    planned = run.json("refresh", "--dry-run")
    assert [f"{chunk['datasetid']}/{chunk['dataid']}" for chunk in planned["chunks"]] == ["tidy/1", "sums/1", "pages/1"]
    assert flow.status("tidy/1") == "READY"
    done = run.json("refresh", "--reason", "the source was corrected", "--as", "ada")
    assert done["chunks"] == planned["chunks"]
    jobs = {"clean": "tidy", "total": "sums", "print": "pages"}
    order = []
    # Whatever can run, runs: nothing is made before its producer.
    while flow.runnable():
        for jobid, dataid in flow.runnable():
            flow.produce(jobid, dataid)
            order.append(f"{jobs[jobid]}/{dataid}")
    assert order == ["tidy/1", "sums/1", "pages/1"]
    assert [flow.chunk(chunk).version for chunk in ("tidy/1", "sums/1", "pages/1", "tidy/2")] == [2, 2, 2, 1]
    assert run.text("stale") == "No chunk is stale.\n"
    assert run.text("refresh") == "No chunk is stale; nothing to refresh.\n"
    assert_invariants(flow.psql)


@pytest.mark.usefixtures("stale")
def test_refresh_of_a_dataset_takes_the_stale_chunks_that_it_is_made_from_along(run: Odf) -> None:
    planned = run.json("refresh", "sums", "--dry-run")["chunks"]
    assert [f"{chunk['datasetid']}/{chunk['dataid']}" for chunk in planned] == ["tidy/1", "sums/1"]


def test_refresh_leaves_what_would_wait_for_a_held_chunk(stale: Flow, run: Odf) -> None:
    run.text("hold", "tidy", "1")
    done = run.json("refresh")
    assert done["chunks"] == []
    assert {chunk["datasetid"] for chunk in done["left"]} == {"sums", "pages"}
    assert stale.status("sums/1") == "READY"
    run.text("unhold", "tidy", "1")
    assert len(run.json("refresh")["chunks"]) == 3


def test_a_dataset_that_declares_it_is_rebuilt_by_heal_and_no_other(flow: Flow, run: Odf) -> None:
    flow.register(*CHAIN)
    for jobid in ("load", "clean", "total", "print"):
        flow.produce(jobid, "1")
    run.text("dataset", "set", "tidy", "--on-new-input", "rebuild")
    assert run.json("dataset", "export", "tidy")["datasets"][0]["on_new_input"] == "rebuild"
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    flow.produce("load", "1")
    assert heal(flow.ledger).rebuilt == (key("tidy/1"),)
    flow.produce("clean", "1")
    assert heal(flow.ledger).rebuilt == ()
    assert run.json("stale")["stale"] == 2, "sums and pages wait for a person"


def test_too_many_stale_chunks_are_left_to_a_person_and_status_says_so(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw", job("split: raw -> parts", Policy(cascade=True), raw=ALL))
    flow.produce("load", "1")
    dataids = [str(number) for number in range(32)]
    flow.type(
        "insert into dataflow.datastatus select 'parts', 'split', n::text, 'OUT', 'PENDING' "
        "from generate_series(0, 31) n"
    )
    for dataid in dataids:
        flow.produce("split", dataid)
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    flow.produce("load", "1")
    assert heal(flow.ledger).rebuilt == ()
    assert "parts: 32 are too many to be rebuilt unasked; run: odf refresh parts" in words(run.text("status"))
    assert "too many to be rebuilt unasked" in words(run.text("stale"))
    assert len(run.json("refresh", "parts", "--yes")["chunks"]) == 32
