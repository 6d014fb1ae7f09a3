"""The heat map draws any number of chunks on one screen."""

from __future__ import annotations

import pytest

from opendataflow_dagster.cli import heatmap


def test_a_heat_map_has_at_most_ten_thousand_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heatmap, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    heatmap.show(
        heatmap.cells([(str(number), "FAILED" if number % 1_000 == 7 else "READY") for number in range(10_000)])
    )
    printed = capsys.readouterr().out
    assert printed.count("▀") == 5_000
    assert len(printed.splitlines()) == 51
    assert "\x1b[31m\x1b[42m▀" in printed  # a failed chunk above a good one

    many = heatmap.cells([(str(number), "FAILED" if number == 500_000 else "READY") for number in range(1_000_000)])
    assert (len(many), many[0].count) == (10_000, 100)
    assert [cell.dataid for cell in many if cell.status == "FAILED"] == ["500000"]
