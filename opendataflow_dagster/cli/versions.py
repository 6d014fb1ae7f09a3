"""`odf rollback`, `announce`, `delete-run`: versions and rows of chunks, set right by hand."""

from __future__ import annotations

import click

from opendataflow_dagster.model.errors import InvalidInput

from .arguments import dataset_argument, job_argument
from .options import Act, acts
from .selection import spoken


@click.command()
@dataset_argument
@click.argument("dataid")
@click.option("--to", "version", type=click.IntRange(min=1), help="The version to go back to. Default: the one before.")
@acts
def rollback(act: Act, datasetid: str, dataid: str, version: int | None) -> None:
    """An earlier version of a chunk becomes the newest. No bytes move; what was made from it is out of date.

    \b
    Example:
      odf rollback delays 2024-01-03
      odf rollback delays 2024-01-03 --to 1 --reason "version 2 counts cancelled flights"
    """
    from opendataflow_dagster.insight.story import previous_version
    from opendataflow_dagster.model.ids import ChunkKey, data_id, dataset_id
    from opendataflow_dagster.protocol.rollback import rollback as verb

    key = ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid))
    with act.ledger() as ledger:
        target = previous_version(ledger, key) if version is None else version
        made = verb(ledger, key, target, by=ledger.actor, reason=act.reason)
    act.report(
        {"datasetid": datasetid, "dataid": dataid, "from_version": target, "version": made},
        f"{key} has version {made}, which is version {target} again; "
        f"run what was made from it again: odf resubmit {datasetid} {dataid} --downstream",
    )


@click.command()
@dataset_argument
@click.argument("dataids", metavar="DATAID...", nargs=-1, required=True)
@click.option("--location", help="Where the data of this one chunk is: a folder or URL.")
@click.option("--rows", type=click.IntRange(min=0), help="How many rows it has.")
@acts
def announce(act: Act, datasetid: str, dataids: tuple[str, ...], location: str | None, rows: int | None) -> None:
    """Chunks of an external DataSet are there: READY, so that their consumers run. Someone else made them.

    \b
    Example:
      odf announce weather 2024-01-05
      odf announce weather 2024-01-05 --location s3://lake/weather/2024-01-05 --rows 24
    """
    from opendataflow_dagster.model.ids import data_id
    from opendataflow_dagster.model.manifest import NewManifest
    from opendataflow_dagster.protocol.announce import announce as verb

    if location is None and rows is not None:
        raise InvalidInput("--rows belongs to a version; say where it is with --location")
    if location is not None and len(dataids) > 1:
        raise InvalidInput("--location is that of one chunk; announce them one by one")
    manifests = {data_id(dataids[0]): NewManifest(location=location, row_count=rows)} if location else None
    with act.ledger() as ledger:
        act.confirm(len(dataids), f"announce {len(dataids):,} chunks of {datasetid}")
        done = verb(ledger, datasetid, dataids, by=ledger.actor, reason=act.reason, manifests=manifests)
    act.report({"chunks": done}, f"READY now: {spoken(done)}." if done else "They were READY before.")


@click.command("delete-run")
@job_argument
@click.argument("dataid")
@acts
def delete_run(act: Act, jobid: str, dataid: str) -> None:
    """As if a Job had never run for a dataid: its rows go, and no other Job's. Versions and history stay.

    \b
    Example:
      odf delete-run average 2024-01-03 --reason "wrong date"
    """
    from opendataflow_dagster.protocol.job_run import delete_run as verb

    with act.ledger() as ledger:
        done = verb(ledger, jobid, dataid, by=ledger.actor, reason=act.reason)
    act.report({"chunks": done}, f"Deleted {spoken(done)}." if done else f"{jobid} has made nothing for {dataid}.")
