"""Commands that inspect: status, watch, why, chunks, chunk show, runs, history. Success, errors and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from click.shell_completion import ShellComplete

from opendataflow_dagster.cli import output
from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.insight.causes import cause_of
from opendataflow_dagster.ledger.chunks import Chunk
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.release import fail
from tests.factories import Flow
from tests.invariants import Kept
from tests.operator import DAYS, Odf, after_an_outage


@pytest.fixture(scope="module")
def month(shared_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """All tests of this file look at the same month; one that changes it uses `restored`."""
    root: Path = tmp_path_factory.mktemp("lake")
    with Ledger(shared_database, actor="test") as ledger, psycopg.connect(shared_database, autocommit=True) as psql:
        flow = Flow(ledger=ledger, url=shared_database, psql=psql, root=root)
        after_an_outage(flow)
        flow.type("insert into dataflow.dataset (datasetid) values ('empty')")
        flow.announce("foreign/1", "ODD")
        yield flow


@pytest.fixture
def restored(month: Flow) -> Iterator[None]:
    kept = Kept.of(month.psql)
    yield
    kept.put_back()


@pytest.fixture
def run(month: Flow) -> Odf:
    return Odf(url=month.url)


# --- status


def test_status_counts_chunks_and_shows_running_ones(run: Odf) -> None:
    printed = run.text("status")
    lines: dict[str, list[str]] = {}
    for line in printed.splitlines():
        if line:
            lines.setdefault(line.split()[0], line.split())
    assert lines["flights"][:5] == ["flights", "20", "9", "1", "66"]
    assert lines["delays"][:6] == ["delays", "8", "1", "16", "5", "26"]
    assert lines["empty"] == ["empty"]
    assert lines["foreign"] == ["foreign", "1", "0", "%"]
    assert lines["delays/2024-01-14"][1:4] == ["average", "2", "1"]


def test_status_json_has_progress_pace_and_running_chunks(run: Odf) -> None:
    result = run.json("status", "delays")
    (delays,) = result["datasets"]
    assert delays["counts"] == {"READY": 8, "RUNNING": 1, "PENDING": 16, "FAILED": 5}
    assert (delays["jobid"], delays["chunks"], delays["runnable"], delays["blocked"]) == ("average", 30, 6, 0)
    assert delays["progress"] == pytest.approx(8 / 30)
    assert delays["pace"] > 0
    assert delays["eta"] == pytest.approx(17 / delays["pace"] * 60, rel=1e-3)
    assert [chunk["dataid"] for chunk in result["running"]] == ["2024-01-14"]
    assert [dataset["datasetid"] for dataset in run.json("status", "--failed")["datasets"]] == ["delays", "flights"]


def test_status_of_a_dataset_shows_only_its_own_limits(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    run = Odf(url=flow.url)
    run.text("pause", "load")
    assert "job load is paused" in run.text("status", "raw")
    assert "job load is paused" not in run.text("status", "tidy")


def test_status_of_an_unknown_dataset_is_an_error(run: Odf) -> None:
    assert "there is no DataSet fligths" in run.error("status", "fligths")


# --- chunks


def test_chunks_in_a_pipe_is_a_heat_map_of_letters(run: Odf) -> None:
    title, cells, legend = run.text("chunks", "delays").splitlines()
    assert title == "delays: 30 chunks, 16 PENDING, 8 READY, 5 FAILED, 1 RUNNING"
    assert cells == "2024-01-01  ........XXXXX>----------------"
    assert legend == ". READY   - PENDING   > RUNNING   X FAILED"
    assert run.text("chunks", "foreign").splitlines()[1:] == ["1  ?", "? other"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["2024-01-05..2024-01-07", "2024-01-30"], [*DAYS[4:7], DAYS[29]]),
        (["..2024-01-02"], DAYS[:2]),
        (["2024-01-29.."], DAYS[28:]),
        (["--status", "failed"], DAYS[8:13]),
        (["--status", "FAILED", "--status", "RUNNING", "2024-01-13.."], DAYS[12:14]),
        (["--since", "1h", "..2024-01-01"], DAYS[:1]),
        (["--until", "1h"], []),
    ],
)
def test_chunks_selects_by_name_range_status_and_time(run: Odf, words: list[str], expected: list[str]) -> None:
    assert [chunk["dataid"] for chunk in run.json("chunks", "delays", *words)["chunks"]] == list(expected)


def test_chunks_list_has_one_line_per_chunk_with_its_reason(run: Odf) -> None:
    header, line = run.text("chunks", "delays", "2024-01-13", "--list").splitlines()
    assert header.split() == ["dataid", "status", "version", "attempt", "changed", "reason"]
    assert line.startswith("2024-01-13  FAILED")
    assert line.endswith("delay is a number: 3 of 199 are not")


def test_chunks_of_an_unknown_name_is_an_error_with_next_step(run: Odf) -> None:
    assert "DataSet nowhere is not registered; list the DataSets with: odf dataset list" in run.error(
        "chunks", "nowhere"
    )
    assert "there is no chunk delays/2023-12-31; list" in run.error("chunks", "delays", "2023-12-31")
    assert "is not a valid time" in run.error("chunks", "delays", "--since", "soon")
    assert run.text("chunks", "empty") == "empty: no matching chunks.\n"


# --- chunk show


def test_chunk_show_prints_everything_about_a_failed_chunk(run: Odf) -> None:
    printed = run.text("chunk", "show", "delays", "2024-01-09")
    assert printed.startswith("delays/2024-01-09 is FAILED, since ")
    for part in ("Attempts", "The five answers", "History", "- -> PENDING", "RUNNING -> FAILED", "SAFE      yes"):
        assert part in printed


@pytest.mark.usefixtures("restored")
def test_chunk_show_prints_the_traceback_of_the_last_failure_and_json_all(flow: Flow) -> None:
    flow.register("load: -> raw")
    run = Odf(url=flow.url)
    for number in (1, 2):
        if number > 1:
            run.text("resubmit", "raw", "1")
        trace = (
            f'Traceback (most recent call last):\n  File "assets/raw.py", line {number}, in raw\n\x1b[31mValueError: no'
        )
        fail(flow.ledger, claim(flow.ledger, "load", "1"), "ValueError: no", trace)

    lines = run.text("chunk", "show", "raw", "1").splitlines()
    (begin,) = [number for number, line in enumerate(lines) if line.startswith("Where the attempt of ")]
    assert lines[begin + 1 : begin + 4] == [
        "  Traceback (most recent call last):",
        '    File "assets/raw.py", line 2, in raw',
        "  \\x1b[31mValueError: no",
    ]
    attempts = run.json("chunk", "show", "raw", "1")["attempts"]
    assert ["line 1" in attempts[0]["traceback"], "line 2" in attempts[1]["traceback"]] == [True, True]


def test_chunk_show_json_has_answers_attempts_versions_and_inputs(month: Flow, run: Odf) -> None:
    month.type(
        "update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'flights' and dataid = '2024-01-01'"
    )
    month.produce("load", "2024-01-01")
    story = run.json("chunk", "show", "delays", "2024-01-01")
    (attempt,) = story["attempts"]
    assert (attempt["outcome"], attempt["version"], attempt["by"]) == ("READY", 1, "test")
    (version,) = story["versions"]
    assert version["inputs"][0] | {"manifest_id": 0} == {
        "datasetid": "flights",
        "dataid": "2024-01-01",
        "manifest_id": 0,
        "version": 1,
    }
    assert story["newer_inputs"] == [{"datasetid": "flights", "dataid": "2024-01-01", "used": 1, "current": 2}]
    assert all(answer["yes"] for answer in story["verdicts"][-1]["answers"])
    assert [event["new_status"] for event in story["events"]] == ["PENDING", "RUNNING", "READY"]
    assert story["chunks"][0]["version"] == 1
    flights = run.json("chunk", "show", "flights", "2024-01-01")
    assert flights["consumers"] == [["average", "2024-01-01"]]
    assert [attempt["outcome"] for attempt in flights["attempts"]] == ["READY", "READY"]
    printed = run.text("chunk", "show", "delays", "2024-01-01")
    assert "made from version 1 of flights/2024-01-01, which is now at version 2; run: odf refresh delays" in printed


def test_chunk_show_of_an_unknown_chunk_is_an_error(run: Odf) -> None:
    assert "there is no chunk delays/nope; list" in run.error("chunk", "show", "delays", "nope")


# --- why


def test_why_of_a_chunk_shows_five_answers_and_exits_0_or_1(run: Odf) -> None:
    printed = run.text("why", "average", "2024-01-13", exit_code=1)
    assert printed.startswith("average/2024-01-13 cannot run: LOCKED, since ")
    assert "SAFE      no      delays/2024-01-13 is FAILED" in printed
    assert run.text("why", "average", "2024-01-15").startswith("average/2024-01-15 can run")


def test_why_json_has_the_code_and_current_or_stored_answers(run: Odf) -> None:
    result = run.json("why", "average", "2024-01-25", exit_code=1)
    assert (result["go"], result["code"]) == (False, "DATA_NOT_READY")
    assert [answer["yes"] for answer in result["verdict"]["answers"]] == [False, True, False, False, True]
    assert run.json("why", "average", "2024-01-01", "--stored")["verdict"]["claim_id"] is not None


def test_why_groups_what_blocks_a_job(run: Odf) -> None:
    result = run.json("why", "average", exit_code=1)
    assert result["runnable"] == 6
    assert [(obstacle["code"], obstacle["count"], obstacle["example"]) for obstacle in result["obstacles"]] == [
        ("DATA_NOT_READY", 9, "2024-01-22"),
        ("DATA_NOT_READY", 1, "2024-01-21"),
    ]
    assert [cause["count"] for cause in result["failures"]] == [4, 1]
    printed = run.text("why", "average", exit_code=1)
    assert printed.startswith("job average: 6 chunks can run now")
    assert "flights/2024-01-22 is PENDING" in printed


def test_why_of_a_job_shows_held_and_unknown_statuses_as_locked(flow: Flow) -> None:
    load, clean = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1", "2"])
    flow.plan(clean, ["1"])
    flow.type("update dataflow.datastatus set status = 'HOLD' where dataid = '1'")
    flow.type("update dataflow.datastatus set status = 'ODD' where dataid = '2'")
    odf_of_flow = Odf(url=flow.url)
    result = odf_of_flow.json("why", "load", exit_code=1)
    assert [(obstacle["code"], obstacle["count"], obstacle["example"]) for obstacle in result["obstacles"]] == [
        ("LOCKED", 1, "1"),
        ("LOCKED", 1, "2"),
    ]
    printed = odf_of_flow.text("why", "load", exit_code=1)
    assert "raw/1 is HOLD" in printed
    assert "raw/2 is ODD" in printed
    assert "Nothing blocks it" not in printed
    # Its input is not READY either, but the hold is what an operator must release.
    assert "tidy/1 is HOLD" in odf_of_flow.text("why", "clean", exit_code=1)


def test_why_of_a_job_says_how_many_chunks_it_checked(flow: Flow) -> None:
    _, clean = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(clean, [str(number) for number in range(600)])
    result = Odf(url=flow.url).json("why", "clean", exit_code=1)
    assert (result["waiting"], result["asked"]) == (600, 500)
    assert "(checked the first 500 of 600)" in Odf(url=flow.url).text("why", "clean", exit_code=1)


def test_why_failed_suggests_resubmitting_what_it_showed(run: Odf) -> None:
    assert "After fixing the cause, run: odf resubmit --failed (" in run.text("why", "--failed", exit_code=1)
    printed = run.text("why", "average", "--failed", "--since", "2024-01-05 14:00", exit_code=1)
    assert "After fixing the cause, run: odf resubmit --failed-since '2024-01-05 14:00:00' --job average (" in printed


def test_why_failed_lists_each_cause_once(run: Odf) -> None:
    printed = run.text("why", "--failed", exit_code=1)
    assert printed.startswith("6 chunks failed, 3 causes")
    assert "OSError: /mnt/lake/* is not there (errno 5)" in printed
    assert "delays/2024-01-12: OSError: /mnt/lake/delays/2024-01-12/part-3 is not there (errno 5)" in printed
    result = run.json("why", "--failed", exit_code=1)
    assert [(cause["count"], cause["jobs"]) for cause in result["causes"]] == [
        (4, ["average"]),
        (1, ["average"]),
        (1, ["load"]),
    ]
    assert result["causes"][0]["example"] == {"datasetid": "delays", "dataid": "2024-01-12"}
    assert run.json("why", "load", "--failed", exit_code=1)["failed"] == 1
    assert run.text("why", "--failed", "--until", "1h") == "No failures.\n"


def test_why_failed_says_the_reason_of_a_cause_once_and_names_what_its_chunks_share(flow: Flow) -> None:
    load, look = flow.register("load: -> raw", "look: -> codes")
    flow.plan(load, ["1", "2"])
    flow.plan(look, ["1"])
    for dataid in ("1", "2"):
        fail(flow.ledger, claim(flow.ledger, "load", dataid), f"the function of DataSet raw has no rows for {dataid}")
    fail(flow.ledger, claim(flow.ledger, "look", "1"), "codes of DataSet codes: 7 are unknown")
    printed = Odf(url=flow.url).text("why", "--failed", exit_code=1)
    assert printed.count("7 are unknown") == 1
    assert "the function of DataSet raw has no rows for {dataid}" in printed
    assert "the function of DataSet raw has no rows for 2" in printed, "an example of what varies"
    assert "{dataset}" not in printed
    assert [cause["cause"] for cause in Odf(url=flow.url).json("why", "--failed", exit_code=1)["causes"]] == [
        "the function of DataSet raw has no rows for {dataid}",
        "codes of DataSet codes: 7 are unknown",
    ]


def test_why_of_a_finished_chunk_says_so_and_how_to_run_it_again(flow: Flow) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    flow.produce("clean", "1")
    printed = Odf(url=flow.url).text("why", "clean", "1", exit_code=1)
    assert printed.startswith("clean/1 is finished, since ")
    assert "cannot run" not in printed
    assert "tidy/1 is READY" in printed
    assert "resubmit it to run it again" in printed
    result = Odf(url=flow.url).json("why", "clean", "1", exit_code=1)
    assert (result["go"], result["code"], result["finished"]) == (False, "LOCKED", True)


def test_why_of_a_chunk_without_inputs_speaks_of_no_input(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    printed = Odf(url=flow.url).text("why", "load", "1")
    assert "it reads no input" in printed
    assert "every input" not in printed
    assert "nobody holds the output" in printed


def test_why_of_a_missing_or_unknown_job_is_an_error(run: Odf) -> None:
    assert "missing JOB; for all failures, use: odf why --failed" in run.error("why")
    assert "job averge is not registered" in run.error("why", "averge")
    assert "job averge is not registered" in run.error("why", "averge", "2024-01-01")
    assert "average/1999-01-01 has no stored answers" in run.error("why", "average", "1999-01-01", "--stored")
    assert "--failed cannot be combined with a dataid" in run.error("why", "average", "2024-01-01", "--failed")
    for ignored in (["--since", "3h"], ["--until", "3h"], ["2024-01-01", "--since", "3h"]):
        assert "--since and --until require --failed" in run.error("why", "average", *ignored)
    for ignored in (["average"], ["--failed"]):
        assert "--stored requires a chunk" in run.error("why", *ignored, "--stored")


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("OSError: /mnt/lake/delays/2024-01-09/part-3 is gone", "OSError: /mnt/lake/* is gone"),
        ("OSError: /mnt/lake1/7/x is gone", "OSError: /mnt/lake1/* is gone"),
        ("/mnt/lake2 is not mounted", "/mnt/lake2 is not mounted"),
        ("cannot read s3://lake/raw/7/x.csv: 403", "cannot read s3://lake/*: 403"),
        ("HTTP/1.1 503 Service Unavailable after 3 tries", "HTTP/1.1 503 Service Unavailable after N tries"),
        ("HTTPError: 403 Client Error for https://api1/v2/7", "HTTPError: 403 Client Error for https://api1/*"),
        ("[Errno 28] No space left on node17", "[Errno 28] No space left on node17"),
        ("exit code 137: pid 4711 was killed at 0x7ffe12ab", "exit code 137: pid N was killed at {id}"),
        ("412 keys are not there (503)", "N keys are not there (503)"),
        ("exit code 1: error: 12 rows are wrong", "exit code 1: error: N rows are wrong"),
        ("ORA-12541: no listener on db2:1521 (10.0.0.5:49152)", "ORA-12541: no listener on db2:1521 (10.0.0.5:N)"),
        ("load_20240109.csv came at 2024-01-09 10:00:01.5", "load_{time}.csv came at {dataid} {time}"),
        ("claim 17 of run 3 ran out at 2025-02-03T04:05:06Z", "claim N of run N ran out at {time}"),
        (
            "task 3 in stage 12.0 failed 4 times (node3 executor 2)",
            "task N in stage N failed N times (node3 executor N)",
        ),
        ("com.example.Foo@1b6d3586 is closed", "com.example.Foo@{id} is closed"),
        ("job average of 2024-01-09 died\n  at line 12:\tkilled", "job {job} of {dataid} died at line N: killed"),
        ("query 7f3a9c1e-11aa-4bcd-9e0f-0123456789ab timed out after 30.5 s", "query {id} timed out after N s"),
        ("delays_old is not delays", "delays_old is not {dataset}"),
        ("", "no reason was given"),
    ],
)
def test_a_cause_is_the_reason_without_chunk_specific_parts(month: Flow, reason: str, cause: str) -> None:
    chunk: Chunk = month.chunk("delays/2024-01-09")
    month_chunk = Chunk(**{name: getattr(chunk, name) for name in Chunk.__slots__} | {"reason": reason})
    assert cause_of(month_chunk) == cause


# --- runs, history, watch


def test_runs_are_listed_newest_first_with_outcome_and_chunks(run: Odf) -> None:
    result = run.json("runs")["runs"]
    assert [(listed["run_id"], listed["jobid"], listed["outcome"], listed["holds"]) for listed in result] == [
        (2, "average", None, 1),
        (1, "load", "ENDED", 0),
    ]
    printed = run.text("runs", "load")
    assert "ENDED" in printed
    assert "cron" in printed
    assert [listed["run_id"] for listed in run.json("runs", "--running")["runs"]] == [2]
    assert run.text("runs", "--failed") == "No matching runs.\n"
    assert "job lod is not registered" in run.error("runs", "lod")


def test_history_shows_who_changed_what_and_why(run: Odf) -> None:
    newest = run.json("history", "--status", "FAILED", "--limit", "1")["events"][0]
    assert (newest["datasetid"], newest["dataid"], newest["actor"]) == ("delays", "2024-01-13", "test")
    assert "delay is a number" in newest["reason"]
    printed = run.text("history", "delays", "2024-01-09")
    assert [line.count(" -> ") for line in printed.splitlines()] == [0, 1, 1, 1]
    assert "RUNNING -> FAILED" in printed.splitlines()[1]
    assert run.json("history", "--by", "nobody")["events"] == []
    assert all(event["locktype"] == "OUT" for event in run.json("history", "flights", "2024-01-01")["events"])
    assert any(event["locktype"] == "IN" for event in run.json("history", "flights", "2024-01-01", "--reads")["events"])
    assert "there is no chunk delays/nope; list" in run.error("history", "delays", "nope")
    assert "DataSet nods is not registered" in run.error("history", "nods")
    assert "job nojob is not registered" in run.error("history", "--job", "nojob")
    assert run.json("history", "empty")["events"] == []
    assert "cannot be combined with a dataid" in run.error("history", "delays", "2024-01-09", "--by", "ada")


def test_watch_in_a_pipe_prints_each_change_once(run: Odf, month: Flow) -> None:
    assert len(run.text("watch", "--looks", "2", "--every", "0.1").splitlines()) == 10
    lines = run.text("watch", "--looks", "1", "--json").splitlines()
    assert len(lines) == 10
    assert '"new_status": "' in lines[-1]
    for wrong in ("0", "nan", "inf"):
        assert "--every" in run.error("watch", "--every", wrong, "--looks", "2")


def test_watch_shows_a_change_that_commits_late(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1", "2", "3"])
    hold = "update dataflow.datastatus set status = 'HOLD' where dataid = '{}'"
    with psycopg.connect(flow.url) as slow:
        slow.execute(hold.format("1").encode())
        flow.type(hold.format("2"))
        pauses: Iterator[Callable[[], object]] = iter([slow.commit, lambda: flow.type(hold.format("3"))])
        monkeypatch.setattr("opendataflow_dagster.cli.watch.time.sleep", lambda _: next(pauses)())
        printed = Odf(url=flow.url).text("watch", "--looks", "3")
    assert [line.split()[2] for line in printed.splitlines() if "HOLD" in line] == ["raw/2", "raw/1", "raw/3"]
    assert len(printed.splitlines()) == 6


def test_watch_on_a_terminal_shows_the_status(run: Odf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    printed = run.text("watch", "--looks", "1")
    assert "odf watch, " in printed
    assert "delays/2024-01-14" in printed


# --- completion


def test_completion_reads_the_ledger_but_starts_no_server(
    month: Flow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def completed(*words: str) -> list[str]:
        *before, incomplete = words
        return [
            item.value for item in ShellComplete(odf, {}, "odf", "_ODF_COMPLETE").get_completions(before, incomplete)
        ]

    monkeypatch.setenv("ODF_DATABASE_URL", month.url)
    assert completed("why", "a") == ["average"]
    assert completed("chunks", "") == ["delays", "empty", "flights"]
    assert "resubmit" in completed("res")
    monkeypatch.setenv("ODF_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    assert completed("why", "a") == []
    monkeypatch.delenv("ODF_DATABASE_URL")
    monkeypatch.setenv("ODF_HOME", str(tmp_path / "home"))
    assert completed("why", "a") == []
    assert not (tmp_path / "home").exists()


# --- rights


def test_a_read_only_role_can_inspect_but_not_change(month: Flow) -> None:
    month.type("create role odf_see_test login password 'look' in role dataflow_reader")
    try:
        parts = urlsplit(month.url)
        reader = Odf(url=parts._replace(netloc=f"odf_see_test:look@{parts.hostname}:{parts.port}").geturl())
        for line in (
            "status",
            "chunks delays",
            "chunk show delays 2024-01-09",
            "why average",
            "why average 2024-01-09",
            "why average 2024-01-15",
            "why average 2024-01-01 --stored",
            "why --failed",
            "runs",
            "history",
            "watch --looks 1",
            "dataset list",
            "job show average",
            "metrics",
            "digest",
        ):
            result = reader(*line.split())
            assert result.exit_code in (0, 1), (line, result.stderr)
            assert result.stderr == ""
        assert "permission denied" in reader.error("resubmit", "delays", "2024-01-09", exit_code=128)
    finally:
        month.type("drop role odf_see_test")
