"""`odf announce`: chunks of an external DataSet are available."""

from __future__ import annotations

import click

from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.model.ids import summary

from .arguments import dataset_argument
from .options import Change, change_options


@click.command()
@dataset_argument
@click.argument("dataids", metavar="DATAID...", nargs=-1, required=True)
@click.option("--location", help="Folder or URL of the data; for a single chunk.")
@click.option("--rows", type=click.IntRange(min=0), help="Number of rows; requires --location.")
@change_options
def announce(change: Change, datasetid: str, dataids: tuple[str, ...], location: str | None, rows: int | None) -> None:
    """Mark chunks of an external DataSet as READY, so that their consumers can run.

    \b
    Example:
      odf announce weather 2024-01-05
      odf announce weather 2024-01-05 --location s3://lake/weather/2024-01-05 --rows 24
    """
    from opendataflow_dagster.model.ids import data_id
    from opendataflow_dagster.model.manifest import NewManifest
    from opendataflow_dagster.protocol.announce import announce as verb

    if location is None and rows is not None:
        raise InvalidInput("--rows requires --location")
    if location is not None and len(dataids) > 1:
        raise InvalidInput("--location applies to a single chunk; announce the chunks one at a time")
    manifests = {data_id(dataids[0]): NewManifest(location=location, row_count=rows)} if location else None
    with change.ledger() as ledger:
        change.confirm(len(dataids), f"announce {len(dataids):,} chunks of {datasetid}")
        announced = verb(ledger, datasetid, dataids, by=ledger.actor, reason=change.reason, manifests=manifests)
    sentence = f"Announced {summary(announced)}." if announced else "No change: all chunks were already READY."
    change.report({"chunks": announced}, sentence)
