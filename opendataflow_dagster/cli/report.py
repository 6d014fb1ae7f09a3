"""`odf report`: an HTML page for people without a terminal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.model.text import escaped

from . import output
from .connection import open_ledger
from .options import json_option
from .parsing import Moment

_FILE = "odf-report.html"
#: Heat-maps to draw, most failures first; the table lists all DataSets.
_HEAT_MAPS = 60


@click.command()
@click.option("--output", "-o", "target", metavar="FILE", help=f"File to write; - for stdout. Default: {_FILE}")
@click.option("--since", type=Moment(), help="Only failures since this time, or an age such as 24h.")
@json_option
def report(target: str | None, since: datetime | None, json_wanted: bool) -> None:
    """Write a self-contained HTML report: heat-maps, failures by cause, durations, throughput, SLA.

    \b
    Example:
      odf report
      odf report --since 24h -o /srv/www/odf.html
      odf report --json
    """
    from opendataflow_dagster.insight.report import (
        chunk_durations,
        chunk_statuses,
        hourly_throughput,
        report_failures,
        report_ledger,
    )

    from .report_page import page

    if json_wanted and target is not None:
        raise InvalidInput("--json cannot be combined with --output")
    target = target or _FILE
    with open_ledger() as ledger:
        current, failed = report_ledger(ledger), report_failures(ledger, since=since)
        took, hours = chunk_durations(ledger), hourly_throughput(ledger)
        if json_wanted:
            output.print_json({**output.jsonable(current), "failures": failed, "durations": took, "hours": hours})
            return
        worst_first = sorted(
            current.glance.datasets, key=lambda dataset: (-dataset.counts.get("FAILED", 0), dataset.datasetid)
        )
        drawable = [dataset.datasetid for dataset in worst_first if dataset.chunks]
        maps = chunk_statuses(ledger, drawable[:_HEAT_MAPS])
    text = escaped(page(current, failed, took, hours, maps, len(drawable) - len(maps)), keep="\n\t")
    if target == "-":
        output.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written ({error.strerror}); choose another file") from None
    output.say(f"Wrote {target}.")
