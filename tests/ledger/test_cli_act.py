"""Commands that change something: success, errors, JSON, dry run, and the name in the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from opendataflow_dagster.cli import options
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import ClaimLost
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.partitions import RangePartitions, daily, static
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.warehouse.location import folder_of
from tests.factories import Flow
from tests.operator import DAYS, Odf

WHO = ("--as", "ada", "--reason", "as agreed")


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Odf:
    """On the month or on an empty flow, depending on the test."""
    flow: Flow = request.getfixturevalue("month" if "month" in request.fixturenames else "flow")
    return Odf(url=flow.url)


def newest_event(flow: Flow) -> tuple[object, ...]:
    result = flow.psql.execute(
        "select datasetid, dataid, new_status, actor, reason from dataflow.chunk_event"
        " where locktype = 'OUT' order by event_id desc limit 1"
    ).fetchone()
    assert result is not None
    return tuple(result)


# --- resubmit


def test_resubmit_records_name_and_reason(month: Flow, run: Odf) -> None:
    assert run.text("resubmit", "delays", "2024-01-09", *WHO) == "Resubmitted delays/2024-01-09.\n"
    assert newest_event(month) == ("delays", "2024-01-09", "RESUBMIT", "ada", "as agreed")
    again = run.json("resubmit", "delays", "2024-01-09")
    assert again["chunks"] == []
    assert again["satisfied"] == [{"datasetid": "delays", "dataid": "2024-01-09"}]


def test_a_dry_run_of_resubmit_reports_but_changes_nothing(month: Flow, run: Odf) -> None:
    result = run.json("resubmit", "--failed", "--dry-run")
    assert result["dry_run"] is True
    assert len(result["chunks"]) == 6
    assert "Would report: Resubmitted 6 chunks (delays: 5, flights: 1)" in run.text("resubmit", "--failed", "--dry-run")
    assert month.status("delays/2024-01-09") == "FAILED"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["delays", "2024-01-09..2024-01-10"], {"delays/2024-01-09", "delays/2024-01-10"}),
        (["--job", "load", "2024-01-21"], {"flights/2024-01-21"}),
        (["delays", "--status", "failed", "2024-01-12.."], {"delays/2024-01-12", "delays/2024-01-13"}),
        (["--failed", "--job", "load"], {"flights/2024-01-21"}),
        (["--failed-since", "1h", "delays"], {f"delays/{day}" for day in DAYS[8:13]}),
        (["--failed-since", "1h", "--until", "30min"], set()),
        (["flights", "2024-01-21", "--downstream"], {"flights/2024-01-21", "delays/2024-01-21"}),
    ],
)
def test_resubmit_selects_by_name_range_and_failure_window(
    month: Flow, run: Odf, words: list[str], expected: set[str]
) -> None:
    resubmitted = run.json("resubmit", *words)["chunks"]
    assert {f"{chunk['datasetid']}/{chunk['dataid']}" for chunk in resubmitted} == expected
    assert all(month.status(name) == "RESUBMIT" for name in expected)


def test_resubmit_leaves_held_chunks_and_asks_before_many(month: Flow, run: Odf) -> None:
    run.text("hold", "delays", "2024-01-09")
    assert "Left on hold: delays/2024-01-09; unhold first." in run.text("resubmit", "delays", "2024-01-09")
    assert "this would resubmit 30 chunks (delays: 30); check with --dry-run, then pass --yes" in run.error(
        "resubmit", "delays", "--all"
    )
    assert "this would resubmit 60 chunks" not in run.error("resubmit", "flights", "--all", "--downstream")
    assert len(run.json("resubmit", "delays", "--all", "--yes")["chunks"]) == 29


def test_a_terminal_prompts_before_a_wide_change(month: Flow, run: Odf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_can_prompt", lambda: True)
    refused = run("hold", "flights", "--all", stdin="n\n")
    assert (refused.exit_code, month.status("flights/2024-01-25")) == (64, "PENDING")
    assert "This would hold 30 chunks (flights: 30). Continue?" in refused.stderr
    assert run("hold", "flights", "--all", stdin="y\n").exit_code == 0
    assert month.status("flights/2024-01-25") == "HOLD"


def test_resubmit_rejects_empty_or_contradicting_selections(month: Flow, run: Odf) -> None:
    assert "no chunks selected: name a DataSet and its chunks, or a Job with --job" in run.error("resubmit")
    assert "delays: no chunks selected; pass dataids, a range A..B, --status or --all" in run.error(
        "resubmit", "delays"
    )
    assert "there is no chunk delays/1999-01-01" in run.error("resubmit", "delays", "1999-01-01")
    assert "DataSet dleays is not registered" in run.error("resubmit", "dleays", "2024-01-01")
    assert "delays: no chunk matches 1999-01-01..1999-12-31" in run.error(
        "resubmit", "delays", "1999-01-01..1999-12-31"
    )
    assert "--failed and --failed-since cannot be combined with dataids" in run.error(
        "resubmit", "--failed", "delays", "2024-01-09"
    )
    assert "--until requires --failed or --failed-since" in run.error(
        "resubmit", "delays", "2024-01-09", "--until", "1h"
    )


def test_a_chunk_name_takes_precedence_over_a_range(flow: Flow, run: Odf) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["a..c", "a", "b", "c"])
    assert run.text("hold", "raw", "a..c") == "Held raw/a..c.\n"
    assert run.json("hold", "raw", "a..b")["chunks"] == [
        {"datasetid": "raw", "dataid": "a"},
        {"datasetid": "raw", "dataid": "b"},
    ]


# --- hold, unhold, skip, cancel


def test_unhold_restores_the_status_before_hold(month: Flow, run: Odf) -> None:
    assert run.text("hold", "flights", "2024-01-25..2024-01-27", *WHO).startswith("Held 3 chunks")
    assert newest_event(month)[2:] == ("HOLD", "ada", "as agreed")
    assert run.json("hold", "flights", "2024-01-25")["chunks"] == []
    assert run.text("hold", "flights", "2024-01-25") == "No change: flights/2024-01-25 was already on hold.\n"
    assert len(run.json("unhold", "flights", "--status", "hold")["chunks"]) == 3
    assert month.status("flights/2024-01-26") == "PENDING"
    assert run.text("unhold", "flights", "2024-01-26") == "No change: flights/2024-01-26 was not on hold.\n"
    assert "flights: no chunk matches the selection" in run.error("unhold", "flights", "--status", "hold")


def test_skip_accepts_existing_and_new_chunks(month: Flow, run: Odf) -> None:
    assert run.text("skip", "flights", "2024-01-30") == "Skipped flights/2024-01-30.\n"
    assert run.json("skip", "flights", "2024-01-30")["chunks"] == []
    assert run.text("skip", "flights", "2024-01-30") == "No change: flights/2024-01-30 was already skipped.\n"
    assert run.text("skip", "flights", "2024-01-31", "--dry-run").startswith("Dry run")
    assert month.status("flights/2024-01-31") == "ABSENT"
    assert "DataSet nowhere is not registered" in run.error("skip", "nowhere", "1")


def test_a_cancelled_claim_cannot_publish(month: Flow, run: Odf) -> None:
    held = claim(month.ledger, "average", "2024-01-15")
    cancelled = run.json("cancel", "delays", "2024-01-14", "2024-01-15", *WHO)["chunks"]
    assert [chunk["dataid"] for chunk in cancelled] == ["2024-01-14", "2024-01-15"]
    assert newest_event(month)[2:] == ("FAILED", "ada", "cancelled by ada: as agreed")
    with pytest.raises(ClaimLost):
        publish(month.ledger, held, month.manifest(held))
    assert month.in_rows() == []
    assert run.text("cancel", "delays", "2024-01-14") == "No change: delays/2024-01-14 was not running.\n"
    assert "there is no chunk delays/nope" in run.error("cancel", "delays", "nope")


def test_cancel_of_a_run_fails_all_its_chunks(month: Flow, run: Odf) -> None:
    assert run.json("cancel", "--run", "2", "--dry-run")["chunks"] == [{"datasetid": "delays", "dataid": "2024-01-14"}]
    assert run.text("cancel", "--run", "2") == "Cancelled run 2, which held delays/2024-01-14.\n"
    assert run.json("runs", "--failed")["runs"][0]["run_id"] == 2
    assert month.status("delays/2024-01-14") == "FAILED"
    assert "run 99 does not exist; list the runs with: odf runs" in run.error("cancel", "--run", "99")
    assert "--run cannot be combined with chunks" in run.error("cancel", "--run", "2", "delays", "2024-01-14")


def test_cancel_of_a_large_run_asks_first(flow: Flow, run: Odf) -> None:
    (load,) = flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw")))
    flow.plan(load, [str(number) for number in range(30)])
    run.text("job", "begin", "load", "--count", "25")
    assert "this would cancel run 1 of load, which holds 25 chunks" in run.error("cancel", "--run", "1")
    assert flow.status("raw/0") == "RUNNING"
    assert len(run.json("cancel", "--run", "1", "--yes")["chunks"]) == 25


def test_cancel_of_one_output_cancels_the_whole_claim(flow: Flow, run: Odf) -> None:
    flow.register("split: -> left, right")
    claim(flow.ledger, "split", "1")
    assert len(run.json("cancel", "left", "1")["chunks"]) == 2
    assert (flow.status("left/1"), flow.status("right/1")) == ("FAILED", "FAILED")


# --- plan


def test_plan_gives_a_decision_and_reason_per_chunk(month: Flow, run: Odf) -> None:
    run.text("resubmit", "delays", "2024-01-11")
    result = run.json("plan", "average", "2024-01-08..2024-01-22")
    assert result["dry_run"] is True
    decisions = {chunk["dataid"]: chunk["decision"] for chunk in result["chunks"]}
    assert result["chunks"][0]["dataid"] == "2024-01-11", "RESUBMIT is taken first"
    assert decisions == {
        "2024-01-08": "NOTHING",
        **dict.fromkeys(DAYS[8:13], "PERSON"),
        "2024-01-11": "RUN",
        "2024-01-14": "RUNNING",
        **dict.fromkeys(DAYS[14:20], "RUN"),
        **dict.fromkeys(DAYS[20:22], "WAIT"),
    }
    printed = run.text("plan", "average")
    assert printed.startswith("average: 10 WAIT, 7 RUN, 4 PERSON, 1 RUNNING")
    assert "flights/2024-01-21 is FAILED" in printed
    assert "job avrage is not registered" in run.error("plan", "avrage")


def test_plan_apply_creates_missing_chunks(month: Flow, run: Odf) -> None:
    words = ("plan", "average", "2024-02-01", "2024-02-02")
    assert "New: 2 chunks; create with --apply." in run.text(*words)
    assert "Would create 2 chunks." in run.text(*words, "--apply", "--dry-run")
    assert month.status("delays/2024-02-01") == "ABSENT"
    assert run.json(*words, "--apply", *WHO)["announced"] == 2
    assert newest_event(month)[1:] == ("2024-02-02", "PENDING", "ada", "as agreed")


@pytest.mark.parametrize(
    ("partitions", "words", "expected"),
    [
        (daily("2024-01-30"), "2024-01-31..2024-02-02", ["2024-01-31", "2024-02-01", "2024-02-02"]),
        (daily("2024-01-30", "2024-02-01"), "..", ["2024-01-30", "2024-01-31", "2024-02-01"]),
        (static("b", "a10", "a9"), "a9..", ["a9", "a10", "b"]),
        (RangePartitions(first=0, last=30, step=10), "10-19..", ["10-19", "20-29", "30-30"]),
    ],
)
def test_plan_expands_a_range_by_the_output_partitions(
    flow: Flow, run: Odf, partitions: object, words: str, expected: list[str]
) -> None:
    flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw"), partitions=partitions))  # type: ignore[arg-type]
    assert [chunk["dataid"] for chunk in run.json("plan", "load", words)["chunks"]] == expected


def test_an_open_or_out_of_bounds_range_is_an_error(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw"), partitions=daily("2024-01-30")))
    assert "give the end of the range" in run.error("plan", "load", "2024-02-01..")
    assert "job load: 2023-01-01 is not one of its partitions" in run.error("plan", "load", "2023-01-01..2024-02-01")
    assert "plan a shorter range" in run.error("plan", "load", "2024-02-01..2999-12-31")


# --- rollback, announce, throttle, pause, resume, heal, delete-run


def test_rollback_publishes_an_earlier_version_again(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw")
    flow.produce("load", "1", "first")
    assert "raw/1 has no earlier version" in run.error("rollback", "raw", "1")
    flow.type("update dataflow.datastatus set status = 'RESUBMIT'")
    flow.produce("load", "1", "second")
    assert "Would report: raw/1 is at version 3, which has the files of version 1" in run.text(
        "rollback", "raw", "1", "--dry-run"
    )
    result = run.json("rollback", "raw", "1", *WHO)
    assert (result["from_version"], result["version"]) == (1, 3)
    assert newest_event(flow)[2:] == ("READY", "ada", "rolled back to version 1: as agreed")
    assert "raw/1 has no version 9" in run.error("rollback", "raw", "1", "--to", "9")


def test_announce_makes_external_chunks_ready(flow: Flow, run: Odf) -> None:
    flow.register("clean: raw -> tidy", raw=Dataset(datasetid=DatasetId("raw")))
    assert run.text("announce", "raw", "1", "2", *WHO).startswith("Announced 2 chunks")
    assert newest_event(flow)[2:4] == ("READY", "ada")
    assert flow.runnable() == [("clean", "1"), ("clean", "2")]
    assert run.json("announce", "raw", "1")["chunks"] == []
    assert run.json("announce", "raw", "3", "--location", "s3://lake/raw/3", "--rows", "7")["chunks"]
    assert run.json("chunk", "show", "raw", "3")["versions"][0]["row_count"] == 7
    assert "DataSet tidy is produced by job clean" in run.error("announce", "tidy", "1")
    assert "announce the chunks one at a time" in run.error("announce", "raw", "4", "5", "--location", "s3://lake")
    assert "--rows requires --location" in run.error("announce", "raw", "4", "--rows", "1")


def test_throttle_pause_and_resume_limit_a_running_job(month: Flow, run: Odf) -> None:
    assert run.text("throttle", "average", "2") == "Job average runs at most 2 chunks at a time.\n"
    assert run.json("why", "average", exit_code=1)["room"] == {
        "concurrency": 2,
        "running": 1,
        "paused": None,
        "free": 1,
    }
    assert len(claim_next(month.ledger, "average", 10)) == 1
    dry = run.text("pause", "average", "--dry-run")
    assert dry == "Dry run, nothing was changed. Would report: Job average is paused.\n"
    assert run.json("pause", "average", *WHO)["changed"] is True
    assert "The Job is paused since" in run.text("why", "average", exit_code=1)
    assert "job average is paused since" in run.text("status")
    assert run.json("status")["limits"][0]["reason"] == "as agreed"
    newest = run.json("job", "show", "average")["steered"][0]
    assert (newest["by"], newest["paused"]) == ("ada", True)
    assert "Limit changes" in run.text("job", "show", "average")
    assert run.text("pause", "average") == "No change: Job average is paused.\n"
    assert run.text("resume", "average", "--dry-run").endswith("Would report: Job average is resumed.\n")
    assert run.json("resume", "average")["room"]["paused"] is None
    assert run.json("throttle", "average", "7", "--dry-run")["room"]["concurrency"] == 7
    assert run.text("throttle", "average", "none", "--dry-run").startswith("Dry run")
    assert run.json("throttle", "average", "none")["room"]["concurrency"] is None
    assert "is not a number of chunks" in run.error("throttle", "average", "many")
    for verb in ("pause", "resume"):
        assert "job nope is not registered" in run.error(verb, "nope")


def test_sweep_removes_failed_attempts_and_keeps_current_versions(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw")
    flow.produce("load", "1")
    attempt = claim(flow.ledger, "load", "2")
    left = Path(folder_of(str(flow.root / "raw"), DatasetId("raw"), attempt.dataid, attempt.claim_id))
    left.mkdir(parents=True)
    fail(flow.ledger, attempt, "the disk was full")
    now = ("--keep-versions", "1", "--failed-days", "0")
    assert run.json("sweep", "raw")["orphans"] == [], "it stays for a week"
    rehearsed = run.text("sweep", "raw", *now, "--dry-run")
    assert "would remove 0 old versions (0 bytes) and 1 failed attempts" in rehearsed
    assert left.is_dir()
    assert [orphan["location"] for orphan in run.json("sweep", "raw", *now)["orphans"]] == [str(left)]
    assert not left.exists()
    assert flow.status("raw/1") == "READY"
    assert "keep 1 or more" in run.error("sweep", "raw", "--keep-versions", "0")
    assert "nothing" in run.error("sweep", "nothing")
    for wrong in ("nan", "1e300", "-1"):
        assert "--keep-days" in run.error("sweep", "raw", "--keep-days", wrong)


def test_sweep_records_who_removed_files_and_why(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw")
    flow.produce("load", "1")
    flow.type("update dataflow.datastatus set status = 'RESUBMIT'")
    flow.produce("load", "1")
    flow.type("set session_replication_role = replica")  # a version is not changed otherwise
    flow.type("update dataflow.data_manifest set published = published - interval '2 hours'")
    run.text("sweep", "raw", "--keep-versions", "1", *WHO)
    assert flow.psql.execute("select by, reason from dataflow.version_sweep").fetchall() == [("ada", "as agreed")]


def test_sweep_asks_before_removing_many_folders(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw")
    for number in range(21):
        attempt = claim(flow.ledger, "load", str(number))
        left = Path(folder_of(str(flow.root / "raw"), DatasetId("raw"), attempt.dataid, attempt.claim_id))
        left.mkdir(parents=True)
        (left / "part-0").write_text("half")
        fail(flow.ledger, attempt, "the disk was full")
    now = ("sweep", "raw", "--failed-days", "0")
    assert "this would remove 21 folders of raw" in run.error(*now)
    assert len(list((flow.root / "raw").rglob("part-0"))) == 21
    assert len(run.json(*now, "--yes")["orphans"]) == 21
    assert list((flow.root / "raw").rglob("part-0")) == []


def test_heal_resubmits_chunks_with_an_expired_lease(month: Flow, run: Odf) -> None:
    month.type(
        "update dataflow.datastatus set lease_until = now() - interval '1 s'"
        " where claim_id is not null and locktype = 'OUT'"
    )
    assert run.json("heal", "--dry-run")["resubmitted"] == [{"datasetid": "delays", "dataid": "2024-01-14"}]
    assert month.status("delays/2024-01-14") == "RUNNING"
    assert run.text("heal").startswith("expired leases: 1 resubmitted")
    assert run.json("heal", "--rebuild")["added"] == 0


def test_delete_run_removes_only_the_rows_of_its_job(month: Flow, run: Odf) -> None:
    made = [{"datasetid": "delays", "dataid": "2024-01-14"}]
    assert run.json("delete-run", "average", "2024-01-14", "--dry-run")["chunks"] == made, "what it read is not its own"
    assert run.text("delete-run", "average", "2024-01-14", *WHO) == "Deleted delays/2024-01-14.\n"
    assert newest_event(month)[2:] == (None, "ada", "as agreed")
    assert (month.status("delays/2024-01-14"), month.status("flights/2024-01-14")) == ("ABSENT", "READY")
    assert "No change: job average has no rows for 2024-01-14." in run.text("delete-run", "average", "2024-01-14")
    assert "job nope is not registered" in run.error("delete-run", "nope", "1")


# --- job begin, renew, end, fail


def test_another_scheduler_begins_renews_and_ends_a_run(flow: Flow, run: Odf) -> None:
    (load, _) = flow.register(
        "load: -> raw", "clean: raw -> tidy", raw=Dataset(datasetid=DatasetId("raw")), tidy=flow.dataset("tidy")
    )
    flow.plan(load, ["9", "10"])
    begun = run.json("job", "begin", "load", "--as", "cron", "--reason", "nightly", "--external-id", "nightly-7")
    assert newest_event(flow)[2:] == ("RUNNING", "cron", "nightly")
    assert (begun["run_id"], begun["claims"][0]["dataid"]) == (1, "9")
    assert run.json("job", "renew", "1")["claims"][0]["lease_until"] > begun["claims"][0]["lease_until"]
    assert run.text("job", "end", "1", "--rows", "12") == "Run 1 published raw version 1.\n"
    assert "run 1 of job load has already ended" in run.error("job", "end", "1")
    assert "the lease expires" in run.text("job", "begin", "clean", "9")
    assert "tidy has the root" in run.error("job", "end", "2")
    assert "does not exist; write it, then end the run" in run.error(
        "job", "end", "2", "--location", str(flow.root / "tidy"), exit_code=130
    )
    (flow.root / "tidy" / "run-2").mkdir(parents=True)
    (flow.root / "tidy" / "run-2" / "part-0").write_text("12345")
    assert "tidy version 1" in run.text("job", "end", "2", "--location", str(flow.root / "tidy" / "run-2"))
    assert run.json("chunk", "show", "tidy", "9")["versions"][0]["bytes"] == 5
    assert [(listed["outcome"], listed["external_id"]) for listed in run.json("runs")["runs"]] == [
        ("ENDED", None),
        ("ENDED", "nightly-7"),
    ]


def test_job_begin_exits_with_1_and_no_run_if_nothing_is_ready(flow: Flow, run: Odf) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    assert run.text("job", "begin", "clean", exit_code=1) == "No chunk of job clean is ready; see: odf why clean\n"
    assert run.json("job", "begin", "clean", exit_code=1)["run_id"] is None
    assert "DATA_NOT_READY: raw/1 does not exist" in run.error("job", "begin", "clean", "1", exit_code=1)
    assert run.json("runs")["runs"] == []
    assert "job nope is not registered" in run.error("job", "begin", "nope")


def test_a_run_that_lost_a_chunk_publishes_the_rest_with_129(flow: Flow, run: Odf) -> None:
    (load,) = flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw")))
    flow.plan(load, ["1", "2"])
    run.text("job", "begin", "load", "--count", "2")
    run.text("resubmit", "raw", "2")
    renewed = run("job", "renew", "1")
    assert (renewed.exit_code, "cannot renew load/2" in renewed.stderr) == (129, True)
    assert "Run 1: the lease now expires" in renewed.stdout
    ended = run.json("job", "end", "1", exit_code=129)
    assert [published["version"] for published in ended["versions"]] == [1]
    assert [lost["dataid"] for lost in ended["lost"]] == ["2"]
    assert (flow.status("raw/1"), flow.status("raw/2")) == ("READY", "RESUBMIT")
    assert run.json("runs")["runs"][0]["outcome"] == "FAILED"


def test_an_interrupted_job_end_can_be_repeated(flow: Flow, run: Odf) -> None:
    (load,) = flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw")))
    flow.plan(load, ["1"])
    run.text("job", "begin", "load")
    run.text("job", "end", "1")
    flow.type("update dataflow.job_run set ended = null, outcome = null")
    assert run.text("job", "end", "1") == "Run 1 published raw version 1.\n"
    assert run.json("runs")["runs"][0]["outcome"] == "ENDED"


@pytest.mark.parametrize("verb", [["renew"], ["end"], ["fail", "--reason", "disk full"]])
def test_a_run_that_lost_all_its_chunks_exits_with_129(flow: Flow, run: Odf, verb: list[str]) -> None:
    (load,) = flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw")))
    flow.plan(load, ["1"])
    run.text("job", "begin", "load")
    run.text("resubmit", "raw", "1")
    assert f"cannot {verb[0]} load/1" in run.error("job", verb[0], "1", *verb[1:], exit_code=129)


def test_job_fail_fails_held_chunks_and_reports_lost_ones(flow: Flow, run: Odf) -> None:
    (load,) = flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw")))
    flow.plan(load, ["1", "2"])
    assert len(run.json("job", "begin", "load", "--count", "2")["claims"]) == 2
    assert "run 1: --reason is required" in run.error("job", "fail", "1")
    run.text("resubmit", "raw", "2")
    assert run.json("job", "fail", "1", "--reason", "disk full")["claims"][0]["dataid"] == "1"
    assert flow.chunk("raw/1").reason == "disk full"
    run.text("job", "begin", "load")
    run.text("resubmit", "raw", "2")
    assert "cannot end load/2" in run.error("job", "end", "2", exit_code=129)
    assert "run 77 does not exist" in run.error("job", "renew", "77")
