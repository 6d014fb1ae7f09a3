"""The HTML report in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.ledger.test_cli_report import month as month
from tests.ledger.test_cli_report import run as run
from tests.operator import Odf

#: What a browser would do that the report must not: errors, dialogs, requests, refusals by the page's policy.
Problems = list[str]


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def report(run: Odf, tmp_path: Path) -> str:
    target = tmp_path / "report.html"
    run.text("report", "-o", str(target))
    return target.as_uri()


@pytest.fixture
def problems() -> Iterator[Problems]:
    noticed: Problems = []
    yield noticed
    assert noticed == []


@pytest.fixture
def page(browser: Browser, report: str, problems: Problems) -> Iterator[Page]:
    with browser.new_page(viewport={"width": 1400, "height": 900}) as opened:
        watch(opened, report, problems)
        opened.goto(report)
        yield opened


def watch(page: Page, report: str, problems: Problems) -> None:
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("console", lambda message: problems.append(message.text))
    page.on("request", lambda request: problems.append(request.url) if request.url != report else None)


def point(page: Page, strip: str, part: float) -> None:
    """At this part of the width of a heat-map."""
    found = page.get_by_role("img", name=strip)
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * part, box["y"] + 10)


def test_a_browser_shows_the_report_without_other_requests(page: Page) -> None:
    assert page.title() == "(8 failed) OpenDataFlow report"
    assert page.get_by_role("heading", name="What is wrong now").is_visible()
    page.get_by_text("All failed chunks").click()
    assert page.get_by_text("timeout after 30 s").first.is_visible()


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_on_a_phone_or_a_wide_screen(page: Page, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 780})
    for details in page.locator("details").all():
        details.evaluate("each => each.open = true")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"
    assert dark == (scheme == "dark")


def test_pointing_at_a_cell_names_its_chunk_status_time_and_reason(page: Page) -> None:
    height = page.evaluate("document.documentElement.scrollHeight")
    point(page, "delays: 30 chunks", 12.5 / 30)
    tip = page.locator("#tip").inner_text().splitlines()
    assert tip[0] == "delays/2024-01-13"
    assert tip[1].startswith("FAILED since 20")
    assert tip[2] == "delay is a number: 3 of 199 are not"
    assert page.evaluate("document.documentElement.scrollHeight") == height, "nothing moves"
    point(page, "big: 10,000 chunks", 168.5 / 358)
    assert page.locator("#tip").inner_text().splitlines()[:2] == ["big/4705 to 4732", "1 FAILED, 27 READY"]


def test_a_click_on_a_cell_opens_the_story_of_its_chunk_and_escape_closes_it(page: Page) -> None:
    point(page, "delays: 30 chunks", 12.5 / 30)
    page.mouse.down()
    page.mouse.up()
    panel = page.get_by_role("dialog", name="delays/2024-01-13")
    assert panel.get_by_text("The five answers now").is_visible()
    assert "#story-" in page.url, "a link to the story can be sent to somebody"
    page.keyboard.press("Escape")
    assert not panel.is_visible()
    page.get_by_role("link", name="e.g. delays/2024-01-13").click()
    assert panel.is_visible()


def test_the_keyboard_reaches_each_cell_and_its_story_or_command(page: Page) -> None:
    strip = page.get_by_role("img", name="flights: 30 chunks")
    strip.focus()
    page.keyboard.press("Home")
    assert page.locator("#tip").inner_text().startswith("flights/2024-01-01\nREADY since")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog", name="flights/2024-01-02")
    assert panel.get_by_text("odf chunk show flights 2024-01-02").is_visible()


def test_a_hostile_name_runs_nowhere_on_the_page(page: Page, problems: Problems) -> None:
    for details in page.locator("details").all():
        details.evaluate("each => each.open = true")
    strip = page.get_by_role("img", name="odd: 1 chunk")
    strip.hover()
    assert "<script>alert" in page.locator("#tip").inner_text()
    strip.click()
    panel = page.get_by_role("dialog")
    assert panel.get_by_role("heading", name="<script>alert").is_visible()
    # Nothing could run even where a text was taken for HTML.
    assert problems == []
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 0\">')")
    page.evaluate("document.body.lastChild.onerror || document.body.lastChild.dispatchEvent(new Event('error'))")
    assert page.title() != "0"
    assert all("Content Security Policy" in problem for problem in problems if not problem.startswith("file:"))
    problems.clear()


def test_the_page_is_useful_without_its_script(browser: Browser, report: str, problems: Problems) -> None:
    context = browser.new_context(java_script_enabled=False)
    with context.new_page() as page:
        watch(page, report, problems)
        page.goto(report)
        flag = page.get_by_role("link", name="5 FAILED, e.g. delays/2024-01-13")
        assert "delay is a number" in (flag.get_attribute("title") or "")
        flag.click()
        assert page.locator(":target").get_by_text("The five answers now").is_visible(), "the story opened"
        assert not page.get_by_role("button", name="copy").first.is_visible()
    context.close()
