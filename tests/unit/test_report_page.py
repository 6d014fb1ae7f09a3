"""The page of `odf report`: its colours can be told from what they are on, and its axis can be read."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from opendataflow_dagster.cli.heatmap import SEVERITY
from opendataflow_dagster.cli.page.axis import ticks
from opendataflow_dagster.cli.page.parts import LETTERS
from opendataflow_dagster.insight.heat_map import WORST_FIRST

_STYLE = (Path(__file__).parents[2] / "opendataflow_dagster" / "cli" / "page" / "page.css").read_text()
_LIGHT, _DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root \{(.*?)\}", _STYLE, re.DOTALL)
)


def contrast(colour: str, ground: str) -> float:
    """As WCAG 2 defines it."""
    low, high = sorted((luminance(colour), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[begin : begin + 2], 16) / 255 for begin in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", [_LIGHT, _DARK], ids=["light", "dark"])
def test_text_and_statuses_have_the_contrast_of_wcag_aa(colours: dict[str, str]) -> None:
    for ground in ("page", "raised"):
        for words in ("text", "soft", "link", "bad"):
            assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)
    for status in (*LETTERS, "other"):
        assert contrast(colours[status], colours["page"]) >= 3, f"a cell of {status}"
        letter = colours.get(f"on-{status}", colours["on-status"])
        assert contrast(letter, colours[status]) >= 4.5, f"the letter of {status}"


def test_each_status_has_its_own_letter() -> None:
    assert len(set(LETTERS.values())) == len(LETTERS)


def labels(dataids: list[str]) -> list[str]:
    return re.findall(r">([^<]+)<", ticks(dataids))


def days(number: int, every: int = 1) -> list[str]:
    return [str(date(2025, 11, 20) + timedelta(days=every * day)) for day in range(number)]


def test_an_axis_of_times_is_labelled_where_days_months_or_years_begin() -> None:
    assert labels(days(12)) == ["21 Nov", "25 Nov", "29 Nov"]
    assert labels(days(365)) == [
        *("Dec", "2026", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov"),
    ]
    assert labels(days(366, every=10)) == [
        "2026",
        "2027",
        "2028",
        "2029",
        "2030",
        "2031",
        "2032",
        "2033",
        "2034",
        "2035",
    ]
    hours = [f"2026-01-{day:02}-{hour:02}:00" for day in range(1, 5) for hour in range(24)]
    assert labels(hours) == ["2 Jan", "3 Jan", "4 Jan"]
    months = [f"{year}-{month:02}-01" for year in (2025, 2026) for month in range(1, 13)]
    assert labels(months) == ["Feb", "Jun", "Oct", "Feb", "Jun", "Oct"]


def test_an_axis_of_other_names_is_labelled_at_its_quarters() -> None:
    assert labels([f"part-{number}" for number in range(100)]) == ["part-25", "part-50", "part-75"]
    assert labels(["EU"]) == labels(["EU", "US"]) == []
    assert "&lt;b&gt;" in ticks(["<b>"] * 9)


def test_the_page_and_the_terminal_agree_on_what_is_worse() -> None:
    assert [status for status in WORST_FIRST if status in SEVERITY] == list(SEVERITY)
