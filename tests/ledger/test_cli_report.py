"""`odf report`, `odf metrics` and `odf digest`: success, errors and JSON."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.release import fail
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow
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
    for part in ("Heat-maps", "Failures", "Throughput", "Duration per chunk", "SLA", "/mnt/lake/* is not there"):
        assert part in page
    assert re.findall(r"(?:src|href|url\()", page) == []
    assert "<script" not in page
    assert "&lt;script&gt;alert" in page
    # 10,000 chunks: one path per status, not one element per chunk.
    (big,) = re.findall(r'aria-label="big".*?</svg>', page)
    assert (big.count("<path"), big.count("M")) == (2, 10_000)
    assert run.text("report", "-o", "-").startswith("<!doctype html>")


def test_report_json_has_answers_durations_throughput_and_sla(run: Odf) -> None:
    result = run.json("report")
    assert {job["jobid"] for job in result["durations"]} == {"load", "average"}
    assert sum(hour["versions"] for hour in result["hours"]) == 28
    assert len(result["hours"]) == 48
    assert {run["jobid"]: run["breached"] for run in result["sla"]} == {
        "average": False,
        "hostile": False,
        "load": False,
    }
    verdicts = result["failures"]["answers"]
    answers = {verdict["dataid"]: [answer["yes"] for answer in verdict["answers"]] for verdict in verdicts}
    assert answers["2024-01-12"] == [True, True, True, True, False]
    assert "cannot be written" in run.error("report", "-o", "/no/such/folder/report.html")
    assert "--json cannot be combined with --output" in run.error("report", "--json", "-o", "report.json")


def test_the_report_counts_omitted_heat_maps(flow: Flow) -> None:
    flow.type("insert into dataflow.dataset (datasetid) select 'set_' || n from generate_series(1, 62) n")
    flow.type(
        "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status)"
        " select 'set_' || n, 'someone', '1', 'OUT', 'READY' from generate_series(1, 62) n"
    )
    page = Odf(url=flow.url).text("report", "-o", "-")
    assert page.count("<figure>") == 60
    assert "Not drawn: 2 more DataSets" in page


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
    (sla,) = Odf(url=flow.url).json("report")["sla"]
    return dict(sla)


def test_a_run_breaches_its_sla_above_one_and_a_half_times_the_95th_percentile(flow: Flow) -> None:
    flow.register("load: -> raw")
    # The ten oldest runs, of 9 hours, are beyond the newest 25.
    finished_runs(flow, *[540] * 10, *[60] * 25)
    sla = newest_run(flow, 89)
    assert (sla["finished"], sla["p95"], sla["limit"], sla["running"]) == (25, 3600, 5400, True)
    assert not sla["breached"], "slower than the average, and within the margin"
    assert sla["rule"] == "1.5 x the 95th percentile of the last 25 finished runs (3,600.0 s)"
    sla = newest_run(flow, 91)
    assert sla["breached"]
    assert sla["duration"] == pytest.approx(5460, abs=30)
    assert "breached" in Odf(url=flow.url).text("report", "-o", "-")


def test_a_slow_run_does_not_raise_the_limit_it_is_judged_by(flow: Flow) -> None:
    flow.register("load: -> raw")
    finished_runs(flow, 10, 10, 10, 10, 10, 600)
    (sla,) = Odf(url=flow.url).json("report")["sla"]
    assert (sla["finished"], sla["limit"], sla["running"], sla["breached"]) == (5, 900, False, True)


def test_fewer_than_five_finished_runs_give_no_judgement(flow: Flow) -> None:
    flow.register("load: -> raw")
    finished_runs(flow, 1, 1, 1, 1)
    sla = newest_run(flow, 999)
    assert (sla["finished"], sla["limit"], sla["breached"]) == (4, None, False)
    assert sla["rule"] == "no limit: 4 finished runs before it, at least 5 are needed"


def test_the_slowest_of_the_healthy_runs_is_within_the_sla(flow: Flow) -> None:
    flow.register("load: -> raw")
    finished_runs(flow, *(50 + number % 20 for number in range(25)))
    assert not newest_run(flow, 69)["breached"]


# --- metrics


def test_metrics_are_in_prometheus_format(run: Odf, tmp_path: Path) -> None:
    result = samples(run.text("metrics"))
    assert result["odf_up", ()] == 1
    assert result["odf_chunks", ("delays", "FAILED")] == 5
    assert result["odf_runnable_chunks", ("average",)] == 6
    assert result["odf_run_sla_breached", ("load",)] == 0
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
