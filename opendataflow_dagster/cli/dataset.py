"""`odf dataset`: the registered DataSets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output, transfer
from .arguments import dataset_argument
from .connection import open_ledger
from .groups import LazyGroup
from .options import Change, change_options, combined, json_option
from .parsing import Duration, parse_partitions

if TYPE_CHECKING:
    from opendataflow_dagster.model.definition import Definition
    from opendataflow_dagster.protocol.remove import RemovedDataset

    from .connection import Ledger

_CONNECTION = ("hostname", "database", "schemaname", "tablename", "username")


@click.group(cls=LazyGroup)
def dataset() -> None:
    """Manage DataSets. For those that code declares, change the code and run `odf apply`.

    \b
    Example:
      odf dataset list
      odf dataset add weather --partitions daily:2024-01-01
    """


@dataset.command("list")
@json_option
def list_(json_wanted: bool) -> None:
    """List all DataSets with their producers, consumers and locations.

    \b
    Example:
      odf dataset list
      odf dataset list --json
    """
    from opendataflow_dagster.model.registry_json import dataset_to_json

    known = transfer.look_up()
    producers = {datasetid: job.jobid for job in known.jobs for datasetid in job.outputs}
    consumers: dict[str, list[str]] = {}
    for job in known.jobs:
        for needed in job.inputs:
            consumers.setdefault(needed.datasetid, []).append(job.jobid)
    if json_wanted:
        objects = [
            {
                **dataset_to_json(definition),
                "producer": producers.get(definition.dataset.datasetid),
                "consumers": consumers.get(definition.dataset.datasetid, []),
            }
            for definition in known.datasets
        ]
        output.print_json({"datasets": objects})
    elif not known.datasets:
        output.say("No DataSets are registered. Add one with: odf dataset add NAME")
    else:
        output.table(
            ["DATASET", "producer", "consumers", "partitions", "location", "owner"],
            [
                [
                    definition.dataset.datasetid,
                    producers.get(definition.dataset.datasetid, "external"),
                    ", ".join(consumers.get(definition.dataset.datasetid, [])),
                    _partitions(definition),
                    definition.dataset.location or "",
                    definition.dataset.owner or "",
                ]
                for definition in known.datasets
            ],
        )


@dataset.command()
@dataset_argument
@json_option
def show(datasetid: str, json_wanted: bool) -> None:
    """Show the definition of a DataSet and who changed it. Passwords are never shown.

    \b
    Example:
      odf dataset show flights
    """
    from opendataflow_dagster.insight.history import dataset_changes
    from opendataflow_dagster.model.registry_json import dataset_to_json

    definition = _registered(datasetid)
    with open_ledger() as ledger:
        changes = dataset_changes(ledger, datasetid)
    values = dataset_to_json(definition)
    if json_wanted:
        output.print_json({**values, "changes": changes})
        return
    flat = {
        **values,
        **{name: getattr(definition.connection, name) for name in _CONNECTION},
        "partitions": _partitions(definition),
    }
    del flat["connection"]
    output.table(["", "value"], [[name, str(value)] for name, value in flat.items() if value is not None])
    transfer.print_changes(changes)


_definition_options = combined(
    click.option("--location", help="Root folder or URL. Empty: unknown to this system."),
    click.option("--partitions", metavar="KIND:...", help="daily:2024-01-01, static:a,b, range:0:999:100 or any."),
    click.option("--schema-hash", help="Schema that every version must have."),
    click.option("--foreign-ready", type=click.Choice(["trusted", "refused"]), help="Trust READY without a manifest?"),
    click.option("--skipped-input", type=click.Choice(["waits", "passes"]), help="Do consumers wait for SKIPPED?"),
    click.option("--on-new-input", type=click.Choice(["rebuild", "mark"]), help="Rebuild stale chunks by itself?"),
    click.option("--repeats/--no-repeats", default=None, help="May two chunks have the same content?"),
    click.option("--timezone", help="For example Europe/Berlin."),
    click.option("--expected-by", metavar="HH:MM", help="Expected READY at this time after its partition ends."),
    click.option("--fresh-within", metavar="DURATION", help="How old the newest READY chunk may be, such as 26h."),
    click.option("--owner", help="Person or team."),
    click.option("--domain", help="Business domain."),
    click.option("--description", help="What it contains."),
    *(click.option(f"--{name}", help="For scripts and upstream clients.") for name in _CONNECTION),
)


@dataset.command()
@dataset_argument
@_definition_options
@change_options
def add(change: Change, datasetid: str, **given: Any) -> None:
    """Register a DataSet: an external one, or one that a script produces.

    \b
    Example:
      odf dataset add weather --partitions daily:2024-01-01 --owner ada
      odf dataset add customers --hostname db1 --database crm --tablename customers --username reader
    """
    from opendataflow_dagster.model.dataset import Dataset
    from opendataflow_dagster.model.definition import Definition, TableAddress
    from opendataflow_dagster.model.ids import dataset_id

    if any(definition.dataset.datasetid == datasetid for definition in transfer.look_up(jobs=[]).datasets):
        raise InvalidInput(f"DataSet {datasetid} already exists; change it with: odf dataset set {datasetid}")
    new = Definition(dataset=Dataset(datasetid=dataset_id(datasetid)), connection=TableAddress())
    _register(change, new, given)


@dataset.command("set")
@dataset_argument
@_definition_options
@change_options
def set_(change: Change, datasetid: str, **given: Any) -> None:
    """Change the definition of a DataSet; other settings stay. The next `odf apply` overrides it with the code.

    \b
    Example:
      odf dataset set weather --owner grace --timezone Europe/Berlin
      odf dataset set weather --location ""
    """
    definition = _registered(datasetid)
    if all(value is None for value in given.values()):
        raise InvalidInput(f"DataSet {datasetid}: nothing to change; pass at least one option (see --help)")
    _register(change, definition, given)


@dataset.command()
@dataset_argument
@click.option("--chunks", "with_chunks", is_flag=True, help="Delete its chunks, too. Their history and files stay.")
@change_options
def remove(change: Change, datasetid: str, with_chunks: bool) -> None:
    """Remove a DataSet that no Job uses. One with chunks is refused, unless they are to be deleted, too.

    A DataSet that code declares comes back with the next `odf apply`, or when Dagster loads the code.

    \b
    Example:
      odf dataset remove weather --dry-run
      odf dataset remove weather --chunks --reason "no longer delivered"
    """
    from opendataflow_dagster.protocol.remove import by_status, remove_dataset

    def removed(ledger: Ledger) -> RemovedDataset:
        return remove_dataset(ledger, datasetid, by=ledger.actor, reason=change.reason, with_chunks=with_chunks)

    if with_chunks:
        with open_ledger(by=change.by, rehearsal=True) as rehearsal:
            count = sum(removed(rehearsal).chunks.values())
        change.confirm(count, f"delete DataSet {datasetid} and {output.counted(count, 'chunk')}")
    with change.ledger() as ledger:
        done = removed(ledger)
    chunks = f" with its chunks ({by_status(done.chunks)})" if done.chunks else ""
    change.report(output.jsonable(done), f"Removed DataSet {datasetid}{chunks}.")


@dataset.command("export")
@click.argument("datasets", metavar="[DATASET]...", nargs=-1)
@click.option("--json", "json_wanted", is_flag=True, help="Accepted for consistency; the output is always JSON.")
def export(datasets: tuple[str, ...], json_wanted: bool) -> None:
    """Print DataSets as JSON, for `odf dataset import` on another ledger. Passwords are not exported.

    \b
    Example:
      odf dataset export > datasets.json
      odf dataset export flights weather
    """
    transfer.export_definitions(transfer.look_up(datasets=list(datasets) or None, jobs=[]))


dataset.add_command(transfer.import_)


def _registered(datasetid: str) -> Definition:
    (definition,) = transfer.look_up(datasets=[datasetid], jobs=[]).datasets
    return definition


def _register(change: Change, before: Definition, given: dict[str, Any]) -> None:
    from opendataflow_dagster.model.definition import Definition, Registry

    # An empty text removes a value.
    named: dict[str, Any] = {
        name: value or None if isinstance(value, str) else value for name, value in given.items() if value is not None
    }
    if given["partitions"] is not None:
        named["partitions"] = parse_partitions(given["partitions"])
    if "fresh_within" in named and (age := named["fresh_within"]) is not None:
        named["fresh_within"] = Duration().convert(age, None, None)
    if "timezone" in named and named["timezone"] is None:
        raise InvalidInput("--timezone must not be empty; use a time zone such as UTC")
    connection = replace(before.connection, **{name: named.pop(name) for name in _CONNECTION if name in named})
    after = Definition(dataset=replace(before.dataset, **named), connection=connection)
    transfer.register(change, Registry(datasets=(after,), jobs=()))


def _partitions(definition: Definition) -> str:
    if definition.dataset.partitions is None:
        return "any"
    values = definition.dataset.partitions.to_json()
    keys = values.get("keys")
    if isinstance(keys, list):
        return f"static, {len(keys)} keys"
    last = f" to {values['last']}" if values["last"] is not None else ""
    return f"{values['kind']} from {values['first']}{last}"
