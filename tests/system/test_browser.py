"""Dagster's UI in a real browser, with a real web server and daemon: a backfill, its failures, and their repair.

`make pictures` takes the pictures of the documentation again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.dagster_server import ROOT, Server
from tests.effort import PATIENCE_SECONDS
from tests.terminal import terminal_picture

DAYS = [f"2024-03-{number:02}" for number in range(1, 31)]
RANGE = f"[{DAYS[0]}...{DAYS[-1]}]"
BAD = ("2024-03-07", "2024-03-19")
PATIENCE = PATIENCE_SECONDS * 1000
PICTURES = ROOT / "docs" / "images"
ALL_MADE = "select count(*) from dataflow.datastatus where datasetid = 'summary' and status = 'READY'"


@pytest.fixture(scope="module")
def page(served: Server, chromium: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        # Root's browser has no sandbox; it sees only our own server.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900}, device_scale_factor=1.5)
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def partitions_of(page: Page, served: Server, asset: str) -> None:
    """Open the asset's partitions page and select the thirty days."""
    page.goto(f"{served.address}/assets/{asset}?view=partitions")
    chosen = page.get_by_role("textbox").first
    chosen.fill(RANGE)
    chosen.press("Enter")
    expect(page.get_by_text("30 Partitions Selected")).to_be_visible()


def materialize(page: Page, choose: str, partitions: str | re.Pattern[str]) -> None:
    """Go through the `Materialize` dialog as a person does."""
    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.locator(".dagster-portal")
    if choose == "Custom":
        field = dialog.get_by_placeholder(re.compile("^ex:"))
        field.fill(RANGE)
        field.press("Enter")
    else:
        dialog.get_by_text(choose, exact=True).click()
    expect(dialog.get_by_text(partitions, exact=True).first).to_be_visible()
    dialog.get_by_role("button", name=re.compile("^Launch")).click()
    expect(dialog.get_by_role("button", name=re.compile("^Launch"))).to_be_hidden()


def wait_until_shown(page: Page, **counts: int) -> None:
    """The legend above the list counts the selected partitions by status."""
    for word, count in counts.items():
        expect(page.get_by_text(f"{word.capitalize()} ({count})", exact=True)).to_be_visible(timeout=PATIENCE)


def picture(page: Page, served: Server, name: str, *, left: int = 0, top: int = 0, bottom: int | None = None) -> None:
    """A picture of the page right of, below and down to these points, without local paths."""
    if not os.environ.get("ODF_SCREENSHOTS") or page.viewport_size is None:
        return
    page.evaluate(
        """folders => { const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
             while (texts.nextNode()) for (const folder of folders)
               texts.currentNode.nodeValue = texts.currentNode.nodeValue.replaceAll(folder, ""); }""",
        [str(served.project.flow.root.parent), str(ROOT)],
    )
    width, height = page.viewport_size["width"] - left, (bottom or page.viewport_size["height"]) - top
    page.screenshot(
        path=PICTURES / f"{name}.png",
        clip={"x": left, "y": top, "width": width, "height": height},
    )


@dataclass(frozen=True, kw_only=True)
class Repair:
    """What the ledger said during the backfill and after the repair."""

    failed: dict[str, str | None]
    versions: dict[str, int | None]


@pytest.fixture(scope="module")
def repaired(page: Page, served: Server) -> Repair:
    """Thirty days backfilled from the UI, two of which failed and were repaired from the UI."""
    flow = served.project.flow
    for day in BAD:
        (served.bad / day).touch()
    partitions_of(page, served, "raw")
    materialize(page, "Custom", "30 partitions")
    wait_until_shown(page, failed=2, materialized=28, missing=0)
    if os.environ.get("ODF_SCREENSHOTS"):
        served.wait_for("the days that can be made", lambda: flow.psql.execute(ALL_MADE).fetchone() == (28,))
        commands = [["status"], ["why", "--failed"]]
        terminal_picture(PICTURES / "terminal.svg", commands, width=118, environment=served.environment)
    picture(page, served, "two-failed", left=240, bottom=370)
    failed = {day: flow.status(f"raw/{day}") for day in DAYS if flow.status(f"raw/{day}") != "READY"}

    for day in BAD:
        (served.bad / day).unlink()
    # Days of other tests of the same server may have failed, too.
    materialize(page, "Failed", re.compile(r"^\d+ partitions$"))
    wait_until_shown(page, failed=0, materialized=30)
    return Repair(failed=failed, versions={day: flow.chunk(f"raw/{day}").version for day in DAYS})


def test_a_backfill_from_the_ui_shows_its_failures_and_the_repair_runs_only_those(repaired: Repair) -> None:
    assert repaired.failed == dict.fromkeys(BAD, "FAILED")
    assert repaired.versions == dict.fromkeys(DAYS, 1)


def test_a_chunk_shows_its_five_answers_rows_version_and_place(page: Page, served: Server, repaired: Repair) -> None:
    served.wait_for("tidy of the first day", lambda: served.project.flow.status(f"tidy/{DAYS[0]}") == "READY")
    page.set_viewport_size({"width": 1400, "height": 1180})
    page.goto(f"{served.address}/assets/tidy?view=partitions&partition={DAYS[0]}")
    for shown in ("version", "duration_s", "answers", "location", f"raw/{DAYS[0]} version 1"):
        expect(page.get_by_text(shown, exact=True).first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text(str(Path("warehouse") / "tidy" / DAYS[0])).first).to_be_visible()
    picture(page, served, "one-chunk", left=532, top=292)


def test_the_failed_run_names_the_chunks_and_the_reason(page: Page, served: Server, repaired: Repair) -> None:
    # Other tests use the same server, with other days.
    wanted = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.FAILURE], tags={"dagster/asset_partition_range_start": DAYS[0]}
    )
    (failed,) = served.project.instance.get_runs(wanted)
    page.set_viewport_size({"width": 1400, "height": 900})
    page.goto(f"{served.address}/runs/{failed.run_id}")
    expect(page.get_by_text("2 of 30 chunks of raw were not made").first).to_be_visible(timeout=PATIENCE)
    picture(page, served, "why-it-failed")


def test_the_checks_of_a_dataset_stand_in_the_checks_tab_with_their_results(
    page: Page, served: Server, repaired: Repair
) -> None:
    page.goto(f"{served.address}/assets/raw?view=checks")
    expect(page.get_by_text("Checks (2)", exact=True)).to_be_visible()
    # It warns: its versions are published.
    expect(page.get_by_text("between(id, 0, 8)", exact=True).first).to_be_visible()
    page.get_by_text("row_count", exact=True).first.click()
    for shown in ("10 rows, expected at least 1", "Passed"):
        expect(page.get_by_text(shown, exact=True).first).to_be_visible()

    page.goto(f"{served.address}/asset-groups")
    expect(page.get_by_text("1 / 2 Passed", exact=True).first).to_be_visible()
