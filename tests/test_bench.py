"""The benchmark runs, and its last line is what readers of its figures expect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def test_the_benchmark_of_claims_ends_with_its_figures() -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "bench/claims.py", "--quick", "--smoke"]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=180, check=False
    )

    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures) - {"note"} == {
        "single_per_s",
        "batched_per_s",
        "single_over_bare",
        "batched_over_bare",
        "growth_1m_over_10k",
        "publish_per_s",
    }
    assert all(value > 0 for name, value in figures.items() if name != "note")
