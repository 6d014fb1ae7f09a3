"""`odf table`: Spark catalog tables for readers outside this system."""

from __future__ import annotations

import click

from opendataflow_dagster.model.errors import OpenDataFlowError

from . import output, transfer
from .arguments import dataset_argument
from .child_process import run_module
from .groups import LazyGroup
from .options import json_option


@click.group(cls=LazyGroup)
def table() -> None:
    """Manage Spark catalog tables, which let other tools read DataSets.

    \b
    Example:
      odf table refresh delays
    """


@table.command()
@dataset_argument
@json_option
def refresh(datasetid: str, json_wanted: bool) -> None:
    """Rebuild the table of a DataSet from the current versions of all chunks. Ledger and files do not change.

    Runs keep the table of a DataSet declared with table=True up to date. Use this command to create the table, after a
    rollback, or when the catalog was lost. Spark starts with the settings in ODF_SPARK_*.

    \b
    Example:
      odf table refresh delays
      odf table refresh delays --json
    """
    transfer.look_up(datasets=[datasetid], jobs=[])
    child = run_module("engine.catalog_table", datasetid)
    if child.exit_code != 0:
        output.write(child.message, err=True)
        click.get_current_context().exit(child.exit_code if child.exit_code > 0 else OpenDataFlowError.exit_code)
    chunks = output.counted(child.value["chunks"], "chunk")
    output.print_result(json_wanted, child.value, f"Table {child.value['table']} now reads {chunks}.")
