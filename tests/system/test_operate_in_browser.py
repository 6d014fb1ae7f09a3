"""Runs, ticks and forms in Dagster's UI, in a real browser: what a person sees without a click, and does there."""

from __future__ import annotations

import re

import dagster as dg
import pytest
from playwright.sync_api import Page, expect

from opendataflow_dagster.insight.story import story
from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.protocol.hold import unhold
from opendataflow_dagster.protocol.register import plan
from tests.dagster_server import ROOT, Server
from tests.effort import PATIENCE_SECONDS
from tests.factories import job, key
from tests.system.test_browser import page as page

PATIENCE = PATIENCE_SECONDS * 1000
# The other tests of the same server have other days.
DAYS = [f"2024-04-{number:02}" for number in range(2, 31)]
RANGE = f"{DAYS[0]}..{DAYS[-1]}"
HELD = "2024-04-01"


@pytest.fixture(scope="module")
def backlog(served: Server) -> str:
    """The run that the readiness sensor starts for 29 days."""
    plan(served.project.flow.ledger, job("raw: -> raw"), DAYS)
    by_sensor = dg.RunsFilter(job_name="raw", tags={"dagster/sensor_name": "readiness", "chunks": "29"})
    served.wait_for("the sensor's run", lambda: served.project.instance.get_runs(by_sensor))
    (run,) = served.project.instance.get_runs(by_sensor)
    return run.run_id


def location(served: Server) -> str:
    return f"{served.address}/locations/__repository__@chain.py"


def test_the_list_of_ticks_shows_the_reason_of_each_tick(page: Page, served: Server, backlog: str) -> None:
    page.goto(f"{location(served)}/sensors/readiness")
    # The whole text in one element: the list cuts a longer one in its middle.
    ticks = page.get_by_role("table").last
    expect(ticks.get_by_text(f"raw: 29 chunks {RANGE}", exact=True).first).to_be_visible(timeout=PATIENCE)

    page.goto(f"{location(served)}/sensors/heal")
    reason = re.compile("^(nothing to heal|[0-9,]+ (reported|re-evaluated))")
    expect(page.get_by_role("table").last.get_by_text(reason).first).to_be_visible(timeout=PATIENCE)


def test_the_list_of_runs_shows_how_many_chunks_a_run_has_and_which_range(
    page: Page, served: Server, backlog: str
) -> None:
    page.goto(f"{served.address}/runs")

    expect(page.get_by_text("chunks: 29", exact=True)).to_be_visible(timeout=PATIENCE)
    label = page.get_by_text(f"range: {RANGE}", exact=True)
    expect(label).to_be_visible()
    assert label.evaluate("label => label.scrollWidth <= label.clientWidth || !label.clientWidth"), "it is cut off"
    expect(page.get_by_text(DAYS[0], exact=True)).to_have_count(0)


def test_a_failed_step_shows_the_authors_file_line_and_code(page: Page, served: Server) -> None:
    flow, day = served.project.flow, "2024-04-01"
    (served.bad / day).touch()
    run_id = served.launch("raw", day)
    served.wait_for_run(run_id)
    (served.bad / day).unlink()
    code = "raise ValueError("
    lines = (ROOT / "tests" / "pipelines" / "chain.py").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if code in text)

    page.goto(f"{served.address}/runs/{run_id}")
    place = f'File "tests/pipelines/chain.py", line {line}, in raw'
    expect(page.get_by_text(place).first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text(code).first).to_be_visible()

    (attempt,) = story(flow.ledger, key(f"raw/{day}")).attempts
    assert place in (attempt.traceback or "")
    assert attempt.reason == "ValueError: the source sent a word where a number should be", "short, to be grouped"


def submit(page: Page, served: Server, act: str, form: str) -> None:
    """Fill in the Launchpad as a person does."""
    page.goto(f"{location(served)}/jobs/odf_{act}/playground")
    editor = page.locator(".CodeMirror")
    for field in ("dataids", "dataset", "dry_run", "most_chunks", "person", "reason"):
        expect(editor.get_by_text(field, exact=True)).to_be_visible(timeout=PATIENCE)
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(f"ops: {{{act}: {{config: {{{form}}}}}}}")
    page.get_by_role("button", name="Launch Run").click()
    expect(page).to_have_url(re.compile("/runs/[0-9a-f-]+"), timeout=PATIENCE)


def test_a_person_holds_a_chunk_with_a_form_of_the_ui_and_the_history_names_the_person(
    page: Page, served: Server
) -> None:
    flow = served.project.flow
    page.goto(f"{served.address}/jobs")
    for act in ("hold", "resubmit", "rollback", "unhold"):
        expect(page.get_by_text(f"odf_{act}", exact=True)).to_be_visible(timeout=PATIENCE)

    submit(page, served, "hold", f"dataset: raw, dataids: ['{HELD}'], person: ada, reason: a new file is coming")
    expect(page.get_by_text(f"Held raw/{HELD}.").first).to_be_visible(timeout=PATIENCE)

    assert flow.status(f"raw/{HELD}") == "HOLD"
    with flow.ledger.statement() as statement:
        event = chunks.history(statement, key(f"raw/{HELD}"))[-1]
    assert re.match("ada, Dagster run [0-9a-f-]+$", event.actor or "")
    assert event.reason == "a new file is coming"
    unhold(flow.ledger, [key(f"raw/{HELD}")], by="test")


def test_a_form_without_a_name_is_refused_with_the_next_step(page: Page, served: Server) -> None:
    submit(page, served, "resubmit", f"dataset: raw, dataids: ['{HELD}']")

    expect(page.get_by_text("person is empty; write your name").first).to_be_visible(timeout=PATIENCE)
