"""Texts of other clients are data: `odf` shows their control characters escaped and never sends them to a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest

from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.throttle import pause
from tests.factories import Flow
from tests.operator import Odf

#: Clears the screen, sets the title of the window, turns text around, and a C1 control that starts a sequence.
HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202eabc \x9b31m\x7f"
SHOWN = r"\x1b[2J\x1b]0;owned\x07 \u202eabc \x9b31m\x7f"


@pytest.fixture
def run(emptied_flow: Flow) -> Odf:
    flow = emptied_flow
    load, clean, _ = flow.register("load: -> raw", "clean: raw -> tidy", "other: -> more")
    flow.plan(load, ["1", "2", "3", "4"])
    flow.plan(clean, ["1", "2"])
    fail(flow.ledger, claim(flow.ledger, "load", "1"), HOSTILE)
    flow.type(
        "update dataflow.datastatus set status = %s, reason = %s where datasetid = 'raw' and dataid = '2'",
        HOSTILE,
        HOSTILE,
    )
    flow.type("update dataflow.dataset set owner = %s, description = %s where datasetid = 'raw'", HOSTILE, HOSTILE)
    flow.type("select set_config('dataflow.actor', %s, false)", HOSTILE)
    flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'raw' and dataid = '3'")
    pause(flow.ledger, "other", by=HOSTILE, reason=HOSTILE)
    return Odf(url=flow.url)


def controls(text: str) -> set[str]:
    return {character for character in text if unicodedata.category(character).startswith("C")} - {"\n"}


@pytest.mark.parametrize(
    ("words", "reads"),
    [
        ("status", True),
        ("why --failed", True),
        ("why clean 2", True),
        ("why other", True),
        ("why load 2", True),
        ("chunks raw", False),
        ("chunks raw --list", True),
        ("chunk show raw 1", True),
        ("chunk show raw 2", True),
        ("runs", False),
        ("history", True),
        ("history raw 2", True),
        ("watch --looks 1", True),
        ("metrics", True),
        ("report --output -", False),
        ("digest", True),
        ("digest --mail ops@example.com", False),
        ("dataset show raw", True),
        ("dataset list", True),
        ("dataset export", False),
        ("job begin load 2", True),
        ("job begin clean 2", True),
        ("job begin other", False),
        ("plan clean", False),
        ("hold raw 2", False),
        ("announce raw 1", False),
        ("rollback raw 2 --to 1", False),
        ("hold raw {}", True),
        ("job begin {}", True),
        ("{}", True),
        ("status --{}", True),
        ("report --output /nowhere/{}", True),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_prints_a_control_character(run: Odf, words: str, reads: bool, form: str) -> None:
    result = run(*(word.format(HOSTILE) for word in words.split()), *(["--json"] if form == "json" else []))
    assert controls(result.stdout) == set()
    assert controls(result.stderr) == set()
    if form == "json" and result.stdout:
        for line in result.stdout.splitlines() if words.startswith("watch") else [result.stdout]:
            json.loads(line)
    if reads and form == "text":
        assert r"\x1b" in result.stdout + result.stderr


def test_a_hostile_reason_is_shown_as_it_is_escaped(run: Odf) -> None:
    assert SHOWN in run.text("chunk", "show", "raw", "1")
    assert SHOWN in run.error("job", "begin", "load", "2", exit_code=1)


def test_the_metrics_can_be_parsed_whatever_the_status_words_are(run: Odf, emptied_flow: Flow) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    for dataid, status in (("3", f"{HOSTILE}\n"), ("4", 'a"b\\\nc')):
        emptied_flow.type("update dataflow.datastatus set status = %s where dataid = %s", status, dataid)
    families = {family.name: family.samples for family in text_string_to_metric_families(run.text("metrics"))}
    words = [sample.labels["status"] for sample in families["odf_chunks"] if sample.labels["dataset"] == "raw"]
    assert (len(words), len(set(words))) == (4, 4)
    assert SHOWN in words


def test_json_has_the_text_unchanged(run: Odf) -> None:
    assert run.json("dataset", "show", "raw")["owner"] == HOSTILE


def test_a_password_is_printed_exactly_in_a_pipe(run: Odf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_PASSPHRASE", "plugh")
    assert run("secret", "set", "raw", stdin="a\x1bb\n").exit_code == 0
    assert run.text("secret", "decrypt", "raw") == "a\x1bb\n"
