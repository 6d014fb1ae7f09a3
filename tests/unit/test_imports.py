"""What must load without Dagster and Spark: the package, the command line, and the quick tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_package_and_its_command_line_start_without_dagster_and_spark() -> None:
    code = (
        "import sys, opendataflow_dagster as odf, opendataflow_dagster.cli.main; odf.daily; odf.row_count;"
        "print([name for name in ('dagster', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("folder", ["unit", "ledger"])
def test_unit_and_ledger_tests_are_collected_without_dagster_and_spark(folder: str) -> None:
    code = (
        "import sys, pytest\n"
        f"code = pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider', 'tests/{folder}'])\n"
        "loaded = [name for name in ('dagster', 'pyspark') if name in sys.modules]\n"
        "sys.exit(f'imported: {loaded}' if loaded else int(code))"
    )
    collected = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert collected.returncode == 0, collected.stdout[-2000:] + collected.stderr
