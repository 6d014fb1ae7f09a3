"""`odf report`, `odf metrics` and `odf digest`: success, errors and JSON."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from opendataflow_dagster.ledger import overview
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.partitions import TimePartitions
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, key
from tests.ledger.test_cli_db import ODF, environment
from tests.operator import Odf, after_an_outage
from tests.scripts import hear_signals

PROJECT = Path(__file__).parents[2]
HOSTILE = '<script>alert("x")</script>$(reboot)'


@pytest.fixture(scope="module")
def month(shared_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """Shared and never changed. One DataSet has 10,000 chunks, one a chunk with a hostile name."""
    with Ledger(shared_database, actor="test") as ledger, psycopg.connect(shared_database, autocommit=True) as psql:
        flow = Flow(ledger=ledger, url=shared_database, psql=psql, root=tmp_path_factory.mktemp("lake"))
        after_an_outage(flow)
        flow.register("hostile: -> odd")
        finished_runs(flow, *[60] * 6, jobid="hostile")
        fail(ledger, claim(ledger, "hostile", HOSTILE), f"{HOSTILE}\x1b[2J\nSubject: spam")
        flow.type("insert into dataflow.dataset (datasetid) values ('big')")
        flow.type(
            "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)"
            " select 'big', 'someone', n::text, 'OUT', case when n = 4711 then 'FAILED' else 'READY' end"
            " from generate_series(1, 10000) n"
        )
        yield flow


@pytest.fixture
def run(month: Flow) -> Odf:
    return Odf(url=month.url)


# --- report


def test_the_report_is_a_self_contained_page(run: Odf, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert run.text("report", "-o", str(target)) == f"Wrote {target}.\n"
    page = target.read_text()
    titles = ["What is wrong now", "DataSets", "Throughput", "Runs", "Limits", "Stories of chunks"]
    assert re.findall(r"<h2>(.*?)</h2>", page) == titles, "in the order in which an operator asks"
    assert "/mnt/lake/* is not there" in page
    assert re.findall(r"\ssrc=|url\(|@import", page) == []
    assert {link[0] for link in re.findall(r'href="(.*?)"', page)} == {"#"}
    assert "default-src 'none'" in page
    assert run.text("report", "-o", "-").startswith("<!doctype html>")


def test_a_hostile_name_stays_text_wherever_the_report_shows_it(run: Odf) -> None:
    page = run.text("report", "-o", "-")
    assert re.findall(r"<script[^>]*>", page) == ['<script type="application/json" id="facts">', "<script>"]
    assert page.count("</script>") == 2
    assert "&lt;script&gt;alert" in page
    names = {cell[0] for each in facts(page)["maps"] for cell in each["cells"] if each["name"] == "odd"}
    assert names == {HOSTILE}, "the script of the page gets the name itself"
    assert "\x1b" not in page


def test_a_heat_map_has_a_bounded_number_of_cells_and_the_worst_status_wins(run: Odf) -> None:
    page = run.text("report", "-o", "-")
    (big,) = (each for each in facts(page)["maps"] if each["name"] == "big")
    assert len(big["cells"]) == 358, "28 chunks a cell"
    (worst,) = (cell for cell in big["cells"] if cell[2] == "FAILED")
    assert worst[:2] == ["4705", "4732"], "in natural order"
    assert worst[6:] == [[["FAILED", 1], ["READY", 27]], "4711"]
    # One path per status, not one element per chunk.
    (drawn,) = re.findall(r'aria-label="big: 10,000 chunks.*?</svg>', page)
    assert drawn.count("<path") == 2
    # Never by colour alone: a failed cell is higher, and its letter stands above it.
    assert f'class="f-FAILED" d="M{4704 // 28} 0h1v100' in drawn
    assert re.search(r'title="big/4711: FAILED since [^"]*"[^>]*>X</a>', page)


def test_a_heat_map_shows_missing_partitions_and_labels_its_months(flow: Flow) -> None:
    days = TimePartitions(kind="daily", first="2024-01-20", last="2024-04-10")
    flow.register("load: -> raw", raw=replace(flow.dataset("raw"), partitions=days))
    flow.produce("load", "2024-01-20")
    flow.produce("load", "2024-04-10")
    page = Odf(url=flow.url).text("report", "-o", "-")
    (raw,) = facts(page)["maps"]
    assert [cell[2] for cell in raw["cells"]] == ["READY", *["missing"] * 80, "READY"]
    (axis,) = re.findall(r'<div class="axis" aria-hidden="true">(.*?)</div>', page[: page.index('id="throughput"')])
    assert re.findall(r">(\w+)<", axis) == ["Feb", "Mar", "Apr"]
    assert "80 missing" in page
    assert "nobody has asked for load/2024-04-09" in page


def test_the_report_names_late_chunks_and_data_that_is_not_fresh(flow: Flow) -> None:
    day_before_yesterday = str((datetime.now(UTC) - timedelta(days=2)).date())
    days = TimePartitions(kind="daily", first=day_before_yesterday)
    flow.register(
        "load: -> raw",
        "watch: -> feed",
        raw=replace(flow.dataset("raw"), partitions=days, expected_by="00:01"),
        feed=replace(flow.dataset("feed"), fresh_within=timedelta(hours=2)),
    )
    now = text(Odf(url=flow.url).text("report", "-o", "-").split('id="datasets"')[0])
    assert "! 2 DataSets late" in now
    assert "feed no data yet, expected within 2 h" in now
    assert re.search(r"raw \d [0-9-]+ is missing", now)


def test_the_report_names_stale_chunks_and_their_causes(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", "count: tidy -> summary")
    for day in ("2024-01-01", "2024-01-02"):
        for jobid in ("load", "clean", "count"):
            flow.produce(jobid, day)
    resubmit(flow.ledger, [key("raw/2024-01-02")], by="ada", reason="the source was corrected")
    flow.produce("load", "2024-01-02")
    page = Odf(url=flow.url).text("report", "-o", "-")
    now = text(page.split("<body>")[1].split('id="datasets"')[0])
    assert "2 stale chunks: READY, but made from old inputs" in now
    assert "made from version 1 of raw/2024-01-02, which is now at version 2" in now
    assert "odf refresh" in now
    (tidy,) = (each for each in facts(page)["maps"] if each["name"] == "tidy")
    assert [cell[2] for cell in tidy["cells"]] == ["READY", "stale"]
    assert tidy["cells"][1][4] == "made from version 1 of raw/2024-01-02, which is now at version 2"
    stories = {text(story): text(told) for story, told in STORY.findall(page)}
    assert "which is stale because of raw/2024-01-02" in stories["~ stale summary/2024-01-02"]


def test_the_stories_of_failed_waiting_and_running_chunks_are_in_the_page(run: Odf) -> None:
    page = run.text("report", "-o", "-")
    stories = {text(story): text(told) for story, told in STORY.findall(page)}
    failed = stories["X FAILED delays/2024-01-13"]
    assert "delay is a number: 3 of 199 are not" in failed
    assert "The five answers now" in failed
    assert "odf chunk show delays 2024-01-13" in failed
    assert "Attempts" in stories["> RUNNING delays/2024-01-14"]
    newest = stories[". READY delays/2024-01-08"]
    assert "1 (current)" in newest
    assert "flights/2024-01-08 version 1" in newest
    assert "- PENDING flights/2024-01-22" in stories
    # What is drawn or listed as having a story has it.
    ids = set(re.findall(r'<div id="(story-\w+)"', page))
    assert {link[1:] for link in re.findall(r'href="(#story-\w+)"', page)} <= ids
    assert len(ids) <= 100


def test_a_story_shows_the_lines_of_code_in_which_the_chunk_failed(flow: Flow) -> None:
    flow.register("load: -> raw")
    lines = 'File "assets/raw.py", line 3, in raw\n    return rows.where("<b>")'
    fail(flow.ledger, claim(flow.ledger, "load", "1"), "ValueError: no", lines)
    page = Odf(url=flow.url).text("report", "-o", "-")
    (shown,) = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    assert unescape(shown) == lines
    assert "<b>" not in shown


def test_names_with_shell_characters_are_quoted_in_copied_commands(run: Odf) -> None:
    page = run.text("report", "-o", "-")
    commands = [unescape(command) for command in re.findall(r'data-copy="(.*?)"', page)]
    assert f"odf chunk show odd {shlex.quote(HOSTILE)}" in commands


def test_report_json_has_answers_durations_throughput_and_runs(run: Odf) -> None:
    result = run.json("report")
    assert {job["jobid"] for job in result["durations"]} == {"load", "average"}
    for spans, length in (("hours", 48), ("days", 30)):
        assert sum(span["versions"] for span in result[spans]) == 28
        assert len(result[spans]) == length
    assert all(span["is_complete"] for span in result["hours"])
    assert {each["jobid"] for each in result["runs"]} == {"load", "average", "hostile"}
    assert {run["jobid"]: run["is_slow"] for run in result["newest_runs"]} == {
        "average": False,
        "hostile": False,
        "load": False,
    }
    verdicts = result["failures"]["answers"]
    answers = {verdict["dataid"]: [answer["yes"] for answer in verdict["answers"]] for verdict in verdicts}
    assert answers["2024-01-12"] == [True, True, True, True, False]


def test_throughput_says_which_hours_it_did_not_count_in_full(month: Flow) -> None:
    now = datetime.now(UTC)
    bounds = [now - timedelta(hours=hour) for hour in (2, 1, -1)]
    with month.ledger.statement() as statement:
        all_versions = overview.throughput(statement, bounds, 1_000)
        newest = overview.throughput(statement, bounds, 10)
    assert [(span.versions, span.is_complete) for span in all_versions] == [(0, True), (28, True)]
    assert [(span.versions, span.is_complete) for span in newest] == [(0, False), (10, False)]


def test_the_report_rejects_what_it_cannot_write(run: Odf) -> None:
    assert "cannot be written" in run.error("report", "-o", "/no/such/folder/report.html")
    assert "cannot be written" in run.error("report", "-o", "/no/such/folder/report.html", "--every", "60")
    for option in (["-o", "report.json"], ["--every", "60"]):
        assert "--json cannot be combined with --output or --every" in run.error("report", "--json", *option)
    assert "--every needs a file" in run.error("report", "--every", "60", "-o", "-")


def test_a_page_written_again_and_again_is_never_half_there(month: Flow, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    process = subprocess.Popen(
        [*ODF, "report", "--every", "1", "-o", str(target)],
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(), "ODF_DATABASE_URL": month.url, "PYTHONUNBUFFERED": "1"},
        preexec_fn=hear_signals,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith(f"Wrote {target}, ")
        first = target.stat().st_ino
        assert facts(target.read_text())["every"] == 1
        assert process.stdout.readline().startswith(f"Wrote {target}, ")
        assert target.stat().st_ino != first, "a new file took its place"
    finally:
        process.send_signal(2)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
        process.stdout.close()
    assert target.read_text().endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_healthy_ledger_says_that_nothing_is_wrong(flow: Flow) -> None:
    flow.register("load: -> raw")
    flow.produce("load", "1")
    page = Odf(url=flow.url).text("report", "-o", "-")
    assert "Nothing: no chunk failed, is late or stale, waits or is on hold." in page
    assert "<title>OpenDataFlow report</title>" in page


def test_the_report_counts_omitted_heat_maps(flow: Flow) -> None:
    flow.type("insert into dataflow.dataset (datasetid) select 'set_' || n from generate_series(1, 62) n")
    flow.type(
        "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)"
        " select 'set_' || n, 'someone', '1', 'OUT', 'READY' from generate_series(1, 62) n"
    )
    page = Odf(url=flow.url).text("report", "-o", "-")
    assert page.count('<article class="ds">') == 60
    assert "2 more DataSets without a heat-map" in page


STORY = re.compile(r'<details class="story"><summary>(.*?)</summary>(.*?)</details>', re.DOTALL)


def facts(page: str) -> Any:
    """What the page's script reads."""
    (found,) = re.findall(r'<script type="application/json" id="facts">(.*?)</script>', page)
    return json.loads(found)


def text(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def finished_runs(flow: Flow, *minutes: int, jobid: str = "load") -> None:
    for length in minutes:
        flow.type(
            "insert into dataflow.job_run (jobid, started, ended, outcome)"
            " select %s, day, day + make_interval(mins => %s), 'ENDED'"
            " from (select now() - interval '2 days') as d(day)",
            jobid,
            length,
        )


def newest_run(flow: Flow, minutes: int) -> dict[str, Any]:
    flow.type(
        "insert into dataflow.job_run (jobid, started) values ('load', now() - make_interval(mins => %s))", minutes
    )
    (found,) = Odf(url=flow.url).json("report")["newest_runs"]
    return dict(found)


def test_a_run_is_slow_above_one_and_a_half_times_the_95th_percentile(flow: Flow) -> None:
    flow.register("load: -> raw")
    # The ten oldest runs, of 9 hours, are beyond the newest 25.
    finished_runs(flow, *[540] * 10, *[60] * 25)
    found = newest_run(flow, 89)
    assert (found["finished"], found["p95"], found["limit"], found["running"]) == (25, 3600, 5400, True)
    assert not found["is_slow"], "slower than the average, and within the margin"
    assert found["rule"] == "1.5 x the 95th percentile of the last 25 finished runs (3,600.0 s)"
    found = newest_run(flow, 91)
    assert found["is_slow"]
    assert found["duration"] == pytest.approx(5460, abs=30)
    assert "Slower than usual" in Odf(url=flow.url).text("report", "-o", "-")


def test_a_slow_run_does_not_raise_the_limit_it_is_judged_by(flow: Flow) -> None:
    flow.register("load: -> raw")
    finished_runs(flow, 10, 10, 10, 10, 10, 600)
    (found,) = Odf(url=flow.url).json("report")["newest_runs"]
    assert (found["finished"], found["limit"], found["running"], found["is_slow"]) == (5, 900, False, True)


def test_fewer_than_five_finished_runs_give_no_judgement(flow: Flow) -> None:
    flow.register("load: -> raw")
    finished_runs(flow, 1, 1, 1, 1)
    found = newest_run(flow, 999)
    assert (found["finished"], found["limit"], found["is_slow"]) == (4, None, False)
    assert found["rule"] == "no limit: 4 finished runs before it, at least 5 are needed"


def test_the_slowest_of_the_healthy_runs_is_not_slow(flow: Flow) -> None:
    flow.register("load: -> raw")
    finished_runs(flow, *(50 + number % 20 for number in range(25)))
    assert not newest_run(flow, 69)["is_slow"]


# --- metrics


def test_metrics_are_in_prometheus_format(run: Odf, tmp_path: Path) -> None:
    result = samples(run.text("metrics"))
    assert result["odf_up", ()] == 1
    assert result["odf_chunks", ("delays", "FAILED")] == 5
    assert result["odf_runnable_chunks", ("average",)] == 6
    assert result["odf_run_slow", ("load",)] == 0
    target = tmp_path / "odf.prom"
    assert run.text("metrics", "--textfile", str(target)) == f"Wrote {target}.\n"
    assert samples(target.read_text())["odf_chunks", ("big", "READY")] == 9_999
    assert {"name": "odf_up", "labels": {}, "value": 1} in run.json("metrics")["metrics"]


def test_metrics_rejects_remote_addresses_and_unwritable_files(run: Odf) -> None:
    assert "is not a loopback address" in run.error("metrics", "--listen", "0.0.0.0:9187")
    assert "is not a valid address" in run.error("metrics", "--listen", "here")
    assert "cannot be written" in run.error("metrics", "--textfile", "/no/such/folder/odf.prom")
    for both in (["--json", "--textfile", "x"], ["--listen", "0", "--json"], ["--listen", "0", "--textfile", "x"]):
        assert "--textfile, --listen and --json cannot be combined" in run.error("metrics", *both)
    assert "--allow-remote requires --listen" in run.error("metrics", "--allow-remote")


@pytest.mark.parametrize(("address", "url"), [("0", "http://127.0.0.1:"), ("[::1]:0", "http://[::1]:")])
def test_the_endpoint_serves_loopback_until_interrupted(month: Flow, address: str, url: str) -> None:
    process = subprocess.Popen(
        [*ODF, "metrics", "--listen", address],
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(), "ODF_DATABASE_URL": month.url, "PYTHONUNBUFFERED": "1"},
        preexec_fn=hear_signals,
    )
    assert process.stdout is not None
    try:
        printed = process.stdout.readline()
        shown = printed.split(";")[0]
        assert shown.startswith(url), printed
        with urlopen(shown, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
            assert samples(answer.read().decode())["odf_chunks", ("flights", "READY")] == 20
    finally:
        process.send_signal(2)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
        process.stdout.close()


def test_the_example_dashboard_uses_only_existing_metrics(run: Odf) -> None:
    run.text("throttle", "load", "3")
    dashboard = json.loads((PROJECT / "examples/grafana-dashboard.json").read_text())
    wanted = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"odf_[a-z_]+", target["expr"])
    }
    assert wanted
    assert wanted <= {name for name, _ in samples(run.text("metrics"))}


def samples(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


# --- digest


def test_the_digest_of_an_outage_is_one_message_by_cause(run: Odf) -> None:
    printed = run.text("digest")
    assert printed.startswith("8 chunks of 4 Jobs failed, 5 causes\n")
    assert "- 4 chunks of average, since " in printed
    assert 'odf resubmit --failed-since "' in printed
    assert "\x1b" not in printed
    # The chunk name is quoted for a shell.
    assert "odf chunk show odd '<script>" in printed
    result = run.json("digest", "--since", "6h")
    assert (result["failed"], len(result["causes"]), result["posted"]) == (8, 5, False)
    assert run.text("digest", "--until", "1h", "--since", "2h") == "No failures.\n"


def test_a_digest_mail_cannot_be_given_extra_headers(run: Odf) -> None:
    printed = run.text("digest", "--mail", "ops@example.com")
    head, _, body = printed.partition("\n\n")
    assert "To: ops@example.com" in head
    assert "Subject: odf: 8 chunks of 4 Jobs failed, 5 causes" in head
    assert "spam" not in head
    assert "4 chunks of average" in body
    assert run.text("digest", "--mail", "ops@example.com", "--until", "1h") == ""
    assert "is not a valid email address" in run.error("digest", "--mail", "ops@example.com\nBcc: all@example.com")
    assert "--webhook cannot be combined with --mail" in run.error("digest", "--mail", "a@b", "--webhook")


def test_the_digest_is_posted_once_without_revealing_the_url(run: Odf, monkeypatch: pytest.MonkeyPatch) -> None:
    with Webhook() as webhook:
        monkeypatch.setenv("ODF_WEBHOOK_URL", f"http://127.0.0.1:{webhook.port}/s3cret")
        assert "8 chunks of 4 Jobs failed" in run.text("digest", "--webhook", "--dry-run")
        assert webhook.received == []
        assert run.text("digest", "--webhook") == "Posted: 8 chunks of 4 Jobs failed, 5 causes\n"
        assert [message["text"].splitlines()[0] for message in webhook.received] == [
            "8 chunks of 4 Jobs failed, 5 causes"
        ]
        assert run.json("digest", "--webhook", "--until", "1h")["posted"] is False
        assert len(webhook.received) == 1
        webhook.answer = 500
        printed = run.error("digest", "--webhook", exit_code=128)
        assert "did not accept the message (HTTP 500)" in printed
        assert "s3cret" not in printed
    monkeypatch.setenv("ODF_WEBHOOK_URL", "http://[s3cret")
    printed = run.error("digest", "--webhook", exit_code=128)
    assert "did not accept the message (ValueError)" in printed
    assert "s3cret" not in printed
    monkeypatch.setenv("ODF_WEBHOOK_URL", "file:///etc/passwd")
    assert "ODF_WEBHOOK_URL must be an http or https URL" in run.error("digest", "--webhook")


def test_a_failure_reason_mentions_nobody_and_links_nowhere_in_a_webhook(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.register("load: -> raw")
    reason = "<!channel> <@U0123> <https://evil.example|the runbook> & @channel @here mail@all.example"
    fail(flow.ledger, claim(flow.ledger, "load", "<!here>"), reason)
    run = Odf(url=flow.url)
    with Webhook() as webhook:
        monkeypatch.setenv("ODF_WEBHOOK_URL", f"http://127.0.0.1:{webhook.port}/s3cret")
        run.text("digest", "--webhook")
        (message,) = webhook.received
        assert set("<>") & set(message["text"]) == set()
        assert "&lt;!channel&gt; &lt;@U" in message["text"]
        assert "|the runbook&gt; &amp; @\u200bchannel @\u200bhere mail@all.example" in message["text"]
        assert "raw/&lt;!here&gt;" in message["text"]
        # What is printed is for people.
        assert "<!channel>" in run.text("digest", "--webhook", "--dry-run")


class Webhook:
    """A real server on loopback."""

    def __init__(self) -> None:
        self.received: list[dict[str, str]] = []
        self.answer = 200
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if webhook.answer == 200:
                    webhook.received.append(json.loads(body))
                self.send_response(webhook.answer)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
