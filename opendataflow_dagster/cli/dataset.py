"""`odf dataset`: the DataSets that are registered."""

from __future__ import annotations

from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from . import transfer as exchange
from .arguments import dataset_argument
from .options import Act, acts, as_json, open_ledger
from .registry_options import parse_partitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from opendataflow_dagster.model.registry import DatasetDefinition

_CONNECTION = ("hostname", "database", "schemaname", "tablename", "username")


@click.group()
def dataset() -> None:
    """DataSets: list, show, add, set, export, import. Those that code declares are mastered there: see `odf apply`.

    \b
    Example:
      odf dataset list
      odf dataset add weather --partitions daily:2024-01-01
    """


@dataset.command("list")
@as_json
def list_(json_wanted: bool) -> None:
    """All DataSets: who makes them, who reads them, where they are.

    \b
    Example:
      odf dataset list
      odf dataset list --json
    """
    known = exchange.look_up()
    producer = {output_: one.jobid for one in known.jobs for output_ in one.outputs}
    readers: dict[str, list[str]] = {}
    for one in known.jobs:
        for each in one.inputs:
            readers.setdefault(each.datasetid, []).append(one.jobid)
    if json_wanted:
        from opendataflow_dagster.model.registry_json import dataset_to_json

        output.print_json(
            {
                "datasets": [
                    {
                        **dataset_to_json(one),
                        "producer": producer.get(one.dataset.datasetid),
                        "consumers": readers.get(one.dataset.datasetid, []),
                    }
                    for one in known.datasets
                ]
            }
        )
        return
    if not known.datasets:
        output.say("No DataSets are registered. Add one: odf dataset add NAME")
        return
    output.table(
        ["DATASET", "made by", "read by", "partitions", "location", "owner"],
        [
            [
                one.dataset.datasetid,
                producer.get(one.dataset.datasetid, "someone else"),
                ", ".join(readers.get(one.dataset.datasetid, [])),
                _partitions(one),
                one.dataset.location or "",
                one.dataset.owner or "",
            ]
            for one in known.datasets
        ],
    )


@dataset.command()
@dataset_argument
@as_json
def show(datasetid: str, json_wanted: bool) -> None:
    """All that is registered of one DataSet, and who changed it. Its password is never shown.

    \b
    Example:
      odf dataset show flights
    """
    from opendataflow_dagster.insight.history import dataset_changes
    from opendataflow_dagster.model.registry_json import dataset_to_json

    (found,) = exchange.look_up(datasets=[datasetid], jobs=[]).datasets
    with open_ledger() as ledger:
        changes = dataset_changes(ledger, datasetid)
    values = dataset_to_json(found)
    if json_wanted:
        output.print_json({**values, "changes": changes})
        return
    flat = {
        **values,
        **{name: getattr(found.connection, name) for name in _CONNECTION},
        "partitions": _partitions(found),
    }
    del flat["connection"]
    output.table(["", "value"], [[name, str(value)] for name, value in flat.items() if value is not None])
    exchange.show_changes(changes)


def _described(function: Callable[..., None]) -> Callable[..., None]:
    options = [
        click.option("--location", help="The root folder or URL. Empty: someone else knows."),
        click.option("--partitions", metavar="KIND:...", help="daily:2024-01-01, static:a,b, range:0:999:100, any."),
        click.option("--schema-hash", help="The schema that every version must have."),
        click.option("--foreign-ready", type=click.Choice(["trusted", "refused"]), help="READY without a manifest."),
        click.option("--skipped-input", type=click.Choice(["waits", "passes"]), help="What consumers of SKIPPED do."),
        click.option("--repeats/--no-repeats", default=None, help="May two chunks have the same content?"),
        click.option("--timezone", help="Like Europe/Berlin."),
        click.option("--owner"),
        click.option("--domain", help="The business domain."),
        click.option("--description"),
        *(click.option(f"--{name}", help="For scripts and upstream clients.") for name in _CONNECTION),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@dataset.command()
@dataset_argument
@_described
@acts
def add(act: Act, datasetid: str, **given: Any) -> None:
    """Register a DataSet: an external one, or one of a script. What exists is not touched.

    \b
    Example:
      odf dataset add weather --partitions daily:2024-01-01 --owner ada
      odf dataset add customers --hostname db1 --database crm --tablename customers --username reader
    """
    from opendataflow_dagster.model.dataset import Dataset
    from opendataflow_dagster.model.ids import dataset_id
    from opendataflow_dagster.model.registry import DatasetConnection, DatasetDefinition

    if any(one.dataset.datasetid == datasetid for one in exchange.look_up(jobs=[]).datasets):
        raise InvalidInput(f"there is a DataSet {datasetid}; change it with: odf dataset set {datasetid}")
    _put(
        act, DatasetDefinition(dataset=Dataset(datasetid=dataset_id(datasetid)), connection=DatasetConnection()), given
    )


@dataset.command("set")
@dataset_argument
@_described
@acts
def set_(act: Act, datasetid: str, **given: Any) -> None:
    """Change what is registered of a DataSet; what is not named stays. Code overrides it at the next `odf apply`.

    \b
    Example:
      odf dataset set weather --owner grace --timezone Europe/Berlin
      odf dataset set weather --location ""
    """
    (found,) = exchange.look_up(datasets=[datasetid], jobs=[]).datasets
    if all(value is None for value in given.values()):
        raise InvalidInput(f"say what of {datasetid} to change; see the options with --help")
    _put(act, found, given)


@dataset.command("export")
@click.argument("datasets", metavar="[DATASET]...", nargs=-1)
@click.option("--json", "json_wanted", is_flag=True, help="It is JSON in any case.")
def export(datasets: tuple[str, ...], json_wanted: bool) -> None:
    """Print DataSets as JSON, for `odf dataset import` on another ledger. Passwords stay here.

    \b
    Example:
      odf dataset export > datasets.json
      odf dataset export flights weather
    """
    exchange.write(exchange.look_up(datasets=list(datasets) or None, jobs=[]))


@dataset.command("import")
@exchange.document_argument
@acts
def import_(act: Act, document: IO[str]) -> None:
    """Register what an export holds; importing it again changes nothing. All of it, or nothing.

    \b
    Example:
      odf dataset import datasets.json --dry-run
      ssh other odf dataset export | odf dataset import -
    """
    exchange.take_in(act, document)


def _put(act: Act, before: DatasetDefinition, given: dict[str, Any]) -> None:
    from opendataflow_dagster.model.registry import DatasetDefinition, Registry

    # An empty text takes a value away.
    named: dict[str, Any] = {
        name: value or None if isinstance(value, str) else value for name, value in given.items() if value is not None
    }
    if given["partitions"] is not None:
        named["partitions"] = parse_partitions(given["partitions"])
    if "timezone" in named and named["timezone"] is None:
        raise InvalidInput("a DataSet has a time zone; give one like UTC")
    connection = replace(before.connection, **{name: named.pop(name) for name in _CONNECTION if name in named})
    after = DatasetDefinition(dataset=replace(before.dataset, **named), connection=connection)
    exchange.put_in(act, Registry(datasets=(after,), jobs=()))


def _partitions(one: DatasetDefinition) -> str:
    if one.dataset.partitions is None:
        return "any"
    values = one.dataset.partitions.to_json()
    keys = values.get("keys")
    if isinstance(keys, list):
        return f"{len(keys)} of a list"
    last = f" to {values['last']}" if values["last"] is not None else ""
    return f"{values['kind']} from {values['first']}{last}"
