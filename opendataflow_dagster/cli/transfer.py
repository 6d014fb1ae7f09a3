"""What DataSets and Jobs have in common: export and import as one document, and who changed them."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .options import Act, open_ledger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opendataflow_dagster.insight.history import DefinitionChange
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.model.registry import Registry
    from opendataflow_dagster.protocol.transfer import RegistryChanges

document_argument = click.argument("document", metavar="FILE|-", type=click.File("r", encoding="utf-8"))


def write(known: Registry) -> None:
    from opendataflow_dagster.model.registry_json import registry_to_json

    output.print_json(registry_to_json(known))


def take_in(act: Act, document: IO[str]) -> None:
    from opendataflow_dagster.model.registry_json import registry_from_json

    try:
        read = json.load(document)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{document.name} is no JSON ({error}); make it with: odf job export") from None
    put_in(act, registry_from_json(read))


def put_in(act: Act, wanted: Registry) -> None:
    from opendataflow_dagster.protocol.transfer import import_registry

    with act.ledger() as ledger:
        confirm(act, ledger, wanted)
        done = import_registry(ledger, wanted)
    act.report(output.jsonable(done), sentence(done))


def confirm(act: Act, ledger: Ledger, wanted: Registry) -> None:
    """What many are, new or changed, needs a yes."""
    from opendataflow_dagster.protocol.transfer import export_registry, preview_import

    foreseen = preview_import(export_registry(ledger), wanted)
    new, changed = len(foreseen.new), len(foreseen.changed)
    act.confirm(new + changed, f"register {new:,} new and {changed:,} changed DataSets and Jobs")


def sentence(done: RegistryChanges) -> str:
    parts = [
        f"{words}: {', '.join(names[:10])}{f' and {len(names) - 10} more' if len(names) > 10 else ''}"
        for words, names in (("New", done.new), ("Changed", done.changed))
        if names
    ]
    if done.unchanged:
        parts.append(f"{len(done.unchanged)} as before")
    return f"{'; '.join(parts)}." if parts else "There was nothing in it."


def look_up(*, datasets: list[str] | None = None, jobs: list[str] | None = None) -> Registry:
    from opendataflow_dagster.protocol.transfer import export_registry

    with open_ledger() as ledger:
        return export_registry(ledger, datasets=datasets, jobs=jobs)


def show_changes(found: Sequence[DefinitionChange]) -> None:
    if found:
        output.heading("\nWho changed it")
        output.table(
            ["at", "by", "what", "reason"],
            [[output.moment(one.at), one.by, ", ".join(one.what), one.reason or ""] for one in found],
        )
