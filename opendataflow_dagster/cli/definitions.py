"""`odf check` and `odf apply`: what definitions.py declares against what the ledger has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidDefinition, InvalidInput

from . import output, transfer
from .child_process import run_module
from .connection import open_ledger
from .options import Change, change_options, exit_with_answer, json_option
from .other_code import ranges_to_json, show_ranges

if TYPE_CHECKING:
    from opendataflow_dagster.model.definition import Registry

_file_argument = click.argument(
    "file", metavar="[DEFINITIONS.PY]", default="definitions.py", type=click.Path(dir_okay=False, path_type=Path)
)


@click.command()
@_file_argument
@json_option
def check(file: Path, json_wanted: bool) -> None:
    """Compare code and ledger: drift, contradictions, overlapping or missing roots. Exits with 1 on any finding.

    Loads the definitions in a separate process and registers nothing. Also lists the READY chunks made by code other
    than what it loads; these do not count as findings.

    \b
    Example:
      odf check
      odf check pipelines/definitions.py --json
    """
    from opendataflow_dagster.insight.drift import find_drift

    declared, _ = _declared(file)
    with open_ledger() as ledger:
        compared = find_drift(ledger, declared)
    if json_wanted:
        output.print_json({**output.jsonable(compared), "other_code": ranges_to_json(compared.other_code)})
    else:
        if compared.findings:
            output.table(
                ["problem", "definition", "detail", "next step"],
                [
                    [(finding.problem, "red"), finding.name, finding.detail, finding.step]
                    for finding in compared.findings
                ],
            )
        elsewhere = f"; {len(compared.elsewhere)} in the ledger only" if compared.elsewhere else ""
        output.say(f"{output.counted(compared.equal, 'definition')} equal in code and ledger{elsewhere}.")
        show_ranges(compared.other_code)
    exit_with_answer(not compared.findings)


@click.command()
@_file_argument
@change_options
def apply(change: Change, file: Path) -> None:
    """Register the DataSets, Jobs and policies that the code declares, in one transaction.

    Loading the code location in Dagster does the same. Concurrency limits set by an operator are kept.

    \b
    Example:
      odf apply --dry-run
      odf apply pipelines/definitions.py
    """
    from opendataflow_dagster.protocol.throttle import throttle_first
    from opendataflow_dagster.protocol.transfer import import_declared as verb
    from opendataflow_dagster.protocol.transfer import with_stored_connections

    declared, limits = _declared(file)
    with change.ledger() as ledger:
        transfer.confirm(change, ledger, with_stored_connections(ledger, declared))
        applied = verb(ledger, declared)
        for jobid, concurrency in limits.items():
            throttle_first(ledger, jobid, concurrency)
    change.report(output.jsonable(applied), transfer.sentence(applied))


def _declared(file: Path) -> tuple[Registry, dict[str, int]]:
    """DataSets and Jobs, and the initial concurrency limits of Jobs."""
    from opendataflow_dagster.model.registry_json import registry_from_json

    if not file.is_file():
        raise InvalidInput(
            f"{file} does not exist; pass the file that calls build_definitions, or create a project with: odf init"
        )
    child = run_module("orchestrator.declared_registry", str(file.resolve()))
    if child.exit_code == InvalidInput.exit_code:
        raise InvalidDefinition(child.message)
    if child.exit_code != 0:
        raise InvalidDefinition(f"{file} cannot be loaded ({child.message}); for a traceback, run: python {file}")
    return registry_from_json(child.value["registry"]), child.value["concurrency"]
