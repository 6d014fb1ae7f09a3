"""What `odf dataset` and `odf job` share: look up, export, import, and the changes of a definition."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .connection import open_ledger
from .options import Change, change_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opendataflow_dagster.insight.history import DefinitionChange
    from opendataflow_dagster.model.definition import Registry
    from opendataflow_dagster.protocol.transfer import RegistryChanges

    from .connection import Ledger


@click.command("import")
@click.argument("document", metavar="FILE|-", type=click.File("r", encoding="utf-8"))
@change_options
def import_(change: Change, document: IO[str]) -> None:
    """Register the DataSets and Jobs of an export, in one transaction. Importing again changes nothing.

    \b
    Example:
      odf dataset import datasets.json --dry-run
      ssh other odf job export | odf job import -
    """
    from opendataflow_dagster.model.registry_json import registry_from_json

    register(change, registry_from_json(_parsed(document)))


def _parsed(document: IO[str]) -> object:
    try:
        return json.load(document)
    except RecursionError:
        problem = "it is nested too deeply"
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        problem = str(error)
    except ValueError:
        problem = "a number has too many digits"
    raise InvalidInput(f"{document.name} is not valid JSON ({problem}); create it with: odf job export")


def look_up(*, datasets: list[str] | None = None, jobs: list[str] | None = None) -> Registry:
    from opendataflow_dagster.protocol.transfer import export_registry

    with open_ledger() as ledger:
        return export_registry(ledger, datasets=datasets, jobs=jobs)


def export_definitions(definitions: Registry) -> None:
    from opendataflow_dagster.model.registry_json import registry_to_json
    from opendataflow_dagster.protocol.transfer import without_code

    output.print_json(registry_to_json(without_code(definitions)))


def register(change: Change, definitions: Registry) -> None:
    from opendataflow_dagster.protocol.transfer import import_registry

    with change.ledger() as ledger:
        confirm(change, ledger, definitions)
        imported = import_registry(ledger, definitions)
    change.report(output.jsonable(imported), sentence(imported))


def confirm(change: Change, ledger: Ledger, definitions: Registry) -> None:
    from opendataflow_dagster.protocol.transfer import export_registry, preview_import

    preview = preview_import(export_registry(ledger), definitions)
    new, changed = len(preview.new), len(preview.changed)
    change.confirm(new + changed, f"register {new:,} new and {changed:,} changed DataSets and Jobs")


def sentence(imported: RegistryChanges) -> str:
    parts = [
        f"{verb}: {output.listing(names, 10)}"
        for verb, names in (("Added", imported.new), ("Changed", imported.changed))
        if names
    ]
    if imported.unchanged:
        parts.append(f"{len(imported.unchanged)} unchanged")
    return f"{'; '.join(parts)}." if parts else "No definitions to import."


def print_changes(changes: Sequence[DefinitionChange]) -> None:
    if changes:
        output.heading("\nChanges")
        output.table(
            ["at", "by", "what", "reason"],
            [[output.moment(change.at), change.by, ", ".join(change.what), change.reason or ""] for change in changes],
        )
