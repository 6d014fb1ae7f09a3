"""Every benchmark runs and ends with a line of figures. Their values depend on the machine and are not asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

FIGURES = {
    "claims.py": {
        *(
            f"{path}_{how}_{figure}"
            for path in ("path", "next")
            for how in ("single", "batched")
            for figure in ("over_bare", "per_s")
        ),
        "growth_1m_over_10k",
        "nothing_to_do_ms",
    },
    "chunks.py": {"sequence_over_bare", "overlap_over_bare", "times_vanilla"},
    "scripts.py": {"one_run_s", "all_per_min", "why_s", "why_700_s", "status_1m_s"},
}
#: For a benchmark that hangs, not for a slow machine.
LIMIT_SECONDS = 1800


@pytest.mark.parametrize("name", FIGURES)
def test_the_benchmark_ends_with_its_figures(name: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, f"bench/{name}", "--quick", "--smoke"]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )

    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures) - {"note"} == FIGURES[name]
    assert all(value > 0 for name, value in figures.items() if name != "note")


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("tick.py", {"idle_s_at_1m", "runnable_10k_s"}),
        ("stale.py", {"stale_1m_s", "publish_single_ratio", "publish_batched_ratio"}),
    ],
)
def test_a_benchmark_of_one_ledger_ends_with_its_figures(name: str, figures: set[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, f"bench/{name}", "--smoke"]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )

    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout.splitlines()[-1])
    assert set(measured) - {"note"} == figures
    assert all(value > 0 for figure, value in measured.items() if figure != "note")
