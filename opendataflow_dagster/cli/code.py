"""`odf check` and `odf apply`: what the code declares, and what the ledger has."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidDefinition, InvalidInput

from . import output
from .options import Act, acts, answer, as_json, open_ledger
from .transfer import confirm, sentence

if TYPE_CHECKING:
    from opendataflow_dagster.model.registry import Registry

_file_argument = click.argument(
    "file", metavar="[DEFINITIONS.PY]", default="definitions.py", type=click.Path(dir_okay=False, path_type=Path)
)


@click.command()
@_file_argument
@as_json
def check(file: Path, json_wanted: bool) -> None:
    """Compare the code with the ledger: what drifted, what contradicts, which roots are missing. Exit with 1 if any.

    The definitions are loaded in a process of their own, with Dagster, and nothing is registered.

    \b
    Example:
      odf check
      odf check pipelines/definitions.py --json
    """
    from opendataflow_dagster.insight.drift import find_drift

    declared, _ = _declared(file)
    with open_ledger() as ledger:
        found = find_drift(ledger, declared)
    if json_wanted:
        output.print_json(found)
    else:
        if found.findings:
            output.table(
                ["problem", "of", "detail", "next step"],
                [[(one.problem, "red"), one.name, one.detail, one.step] for one in found.findings],
            )
        more = f", {len(found.elsewhere)} others are registered from elsewhere" if found.elsewhere else ""
        agree = output.counted(found.equal, "definition")
        output.say(f"{agree} equal in code and ledger{more}.")
    answer(not found.findings)


@click.command()
@_file_argument
@acts
def apply(act: Act, file: Path) -> None:
    """Make the ledger equal to the code: DataSets, Jobs and their policies. All of it, or nothing.

    Loading the code location in Dagster does the same. What an operator has throttled stays so.

    \b
    Example:
      odf apply --dry-run
      odf apply pipelines/definitions.py
    """
    from opendataflow_dagster.protocol.throttle import throttle_first
    from opendataflow_dagster.protocol.transfer import import_declared as verb
    from opendataflow_dagster.protocol.transfer import with_stored_connections

    declared, limits = _declared(file)
    with act.ledger() as ledger:
        confirm(act, ledger, with_stored_connections(ledger, declared))
        done = verb(ledger, declared)
        for jobid, concurrency in limits.items():
            throttle_first(ledger, jobid, concurrency)
    act.report(output.jsonable(done), sentence(done))


def _declared(file: Path) -> tuple[Registry, dict[str, int]]:
    """DataSets and Jobs, and with how many chunks at a time each Job begins."""
    from opendataflow_dagster.model.registry_json import registry_from_json

    if not file.is_file():
        raise InvalidInput(
            f"there is no {file} here; name the file that calls build_definitions, or make one: odf init"
        )
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "declared.json"
        command = [sys.executable, "-m", "opendataflow_dagster.orchestrator.describe", str(file.resolve()), str(result)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == InvalidInput.exit_code:
            raise InvalidDefinition(_last_line(done.stderr))
        if done.returncode != 0:
            raise InvalidDefinition(f"{file} cannot be loaded ({_last_line(done.stderr)}); see where: python {file}")
        described: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return registry_from_json(described["registry"]), described["concurrency"]


def _last_line(text: str) -> str:
    return output.printable((text.strip().splitlines() or ["it said nothing"])[-1])
