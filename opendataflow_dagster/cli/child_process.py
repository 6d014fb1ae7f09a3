"""Runs a module that needs Dagster or Spark in a process of its own, so that `odf` itself imports neither."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .output import printable


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildResult:
    exit_code: int
    #: The last line of stderr: libraries log a lot before the error message.
    message: str
    #: What it wrote as JSON; None if it failed.
    value: Any


def run_module(module: str, argument: str) -> ChildResult:
    """`python -m MODULE ARGUMENT RESULT.JSON`."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", f"opendataflow_dagster.{module}", argument, str(result)]
        process = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        lines = process.stderr.strip().splitlines()
        return ChildResult(
            exit_code=process.returncode,
            message=printable(lines[-1]) if lines else f"exit code {process.returncode}",
            value=None if process.returncode else json.loads(result.read_text(encoding="utf-8")),
        )
