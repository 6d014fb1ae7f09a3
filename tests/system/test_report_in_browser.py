"""The HTML report in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.ledger.test_cli_report import month as month
from tests.ledger.test_cli_report import run as run
from tests.operator import Odf


def test_a_browser_shows_the_report_without_other_requests(run: Odf, tmp_path: Path, chromium: str) -> None:
    target = tmp_path / "report.html"
    run.text("report", "-o", str(target))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        problems: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(target.as_uri())
        assert page.title() == "OpenDataFlow report"
        assert page.get_by_role("img", name="big").locator("path").count() == 2
        assert page.get_by_role("heading", name="Failures").is_visible()
        page.get_by_text("All failed chunks").click()
        assert page.get_by_text("timeout after 30 s").last.is_visible()
        # Nothing overflows on the right.
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        browser.close()
    assert (problems, asked) == ([], [target.as_uri()])
