"""The heat map draws any number of chunks on one screen."""

from __future__ import annotations

import pytest

from opendataflow_dagster.cli import heatmap


def test_ten_thousand_chunks_are_drawn_two_rows_in_a_line_and_a_million_in_ten_thousand_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heatmap, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    heatmap.show(heatmap.cells([(str(one), "FAILED" if one % 1_000 == 7 else "READY") for one in range(10_000)]))
    said = capsys.readouterr().out
    assert said.count("▀") == 5_000
    assert len(said.splitlines()) == 51
    assert "\x1b[31m\x1b[42m▀" in said  # a failed chunk above a good one

    many = heatmap.cells([(str(one), "FAILED" if one == 500_000 else "READY") for one in range(1_000_000)])
    assert (len(many), many[0].count) == (10_000, 100)
    assert [one.dataid for one in many if one.status == "FAILED"] == ["500000"]
