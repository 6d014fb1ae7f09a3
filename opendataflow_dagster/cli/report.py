"""`odf report`: one page for everybody who has no terminal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .arguments import Moment
from .options import as_json, open_ledger

_FILE = "odf-report.html"
#: So many heat-maps are drawn, those with the most failures first; the table has all DataSets.
_HEAT_MAPS = 60


@click.command()
@click.option(
    "--output", "-o", "target", metavar="FILE", help=f"Where to write the page; - prints it. Default: {_FILE}"
)
@click.option("--since", type=Moment(), help="Only failures since then: a time, or 24h.")
@as_json
def report(target: str | None, since: datetime | None, json_wanted: bool) -> None:
    """Write one HTML page that needs nothing else: heat-maps, what failed and why, durations, throughput, SLA.

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
        raise InvalidInput("--json prints, and --output writes the page; choose one")
    target = target or _FILE
    with open_ledger() as ledger:
        looked, bad = report_ledger(ledger), report_failures(ledger, since=since)
        took, hours = chunk_durations(ledger), hourly_throughput(ledger)
        if json_wanted:
            output.print_json({**output.jsonable(looked), "failures": bad, "durations": took, "hours": hours})
            return
        worst = sorted(looked.glance.datasets, key=lambda one: (-one.counts.get("FAILED", 0), one.datasetid))
        drawable = [one.datasetid for one in worst if one.chunks]
        maps = chunk_statuses(ledger, drawable[:_HEAT_MAPS])
    text = page(looked, bad, took, hours, maps, len(drawable) - len(maps))
    if target == "-":
        click.echo(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written ({error.strerror}); give another file with --output") from None
    output.say(f"Wrote {target}.")
