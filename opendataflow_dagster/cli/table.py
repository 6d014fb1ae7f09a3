"""`odf table`: the table of a DataSet for readers outside, in the catalog of Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from opendataflow_dagster.model.errors import UnknownName
from opendataflow_dagster.model.ids import dataset_id

from . import output
from .options import as_json, open_ledger


@click.group()
def table() -> None:
    """The table of a DataSet for readers outside, in the catalog of Spark.

    \b
    Example:
      odf table refresh delays
    """


@table.command()
@click.argument("datasetid", metavar="DATASET")
@as_json
def refresh(datasetid: str, json_wanted: bool) -> None:
    """Make the table anew from the current versions of all chunks. The ledger and the files stay as they are.

    A DataSet that is declared with table=True has its table kept by the runs that publish. This is for the first time,
    after a rollback, and whenever the catalog was lost. Spark is started with the settings of ODF_SPARK_*.

    \b
    Example:
      odf table refresh delays
      odf table refresh delays --json
    """
    from opendataflow_dagster.ledger.chunks import producer_of

    with open_ledger() as ledger, ledger.statement() as statement:
        is_known, _ = producer_of(statement, dataset_id(datasetid))
    if not is_known:
        raise UnknownName(f"DataSet {datasetid} is not registered; see which are: odf dataset list")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "table.json"
        command = [sys.executable, "-m", "opendataflow_dagster.engine.catalog_table", datasetid, str(result)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            # Spark says a lot before the one sentence.
            click.echo(output.printable((done.stderr.strip().splitlines() or ["Spark ended"])[-1]), err=True)
            click.get_current_context().exit(done.returncode if done.returncode > 0 else 128)
        made = json.loads(result.read_text(encoding="utf-8"))
    if json_wanted:
        output.print_json(made)
    else:
        output.say(f"The table {made['table']} reads {output.counted(made['chunks'], 'chunk')}.")
