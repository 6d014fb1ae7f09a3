"""`odf rollback`: go back to an earlier version of a chunk."""

from __future__ import annotations

import click

from .arguments import dataset_argument
from .options import Change, change_options


@click.command()
@dataset_argument
@click.argument("dataid")
@click.option("--to", "version", type=click.IntRange(min=1), help="Version to go back to. Default: the previous one.")
@change_options
def rollback(change: Change, datasetid: str, dataid: str, version: int | None) -> None:
    """Make an earlier version of a chunk the current one. No data is copied; chunks made from it become stale.

    \b
    Example:
      odf rollback delays 2024-01-03
      odf rollback delays 2024-01-03 --to 1 --reason "version 2 counts cancelled flights"
    """
    from opendataflow_dagster.insight.story import previous_version
    from opendataflow_dagster.model.ids import ChunkKey, data_id, dataset_id
    from opendataflow_dagster.protocol.rollback import rollback as verb

    key = ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid))
    with change.ledger() as ledger:
        target = previous_version(ledger, key) if version is None else version
        new_version = verb(ledger, key, target, by=ledger.actor, reason=change.reason)
    change.report(
        {"datasetid": datasetid, "dataid": dataid, "from_version": target, "version": new_version},
        f"{key} is at version {new_version}, which has the files of version {target}. "
        f"To run its consumers again: odf resubmit {datasetid} {dataid} --downstream",
    )
