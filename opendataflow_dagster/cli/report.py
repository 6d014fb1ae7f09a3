"""`odf report`: an HTML page for people without a terminal."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .connection import open_ledger
from .options import json_option
from .parsing import Moment, Number

if TYPE_CHECKING:
    from .connection import Ledger
    from .page.document import PageFigures

_FILE = "odf-report.html"
_RUNS = 15
_STALE = 500


@click.command()
@click.option("--output", "-o", "target", metavar="FILE", help=f"File to write; - for stdout. Default: {_FILE}")
@click.option("--since", type=Moment(), help="Only failures since this time, or an age such as 24h.")
@click.option(
    "--every", type=Number(min=1, max=86_400), metavar="SECONDS", help="Write the page again and again, until Ctrl-C."
)
@json_option
def report(target: str | None, since: datetime | None, every: float | None, json_wanted: bool) -> None:
    """Write a self-contained HTML page: what is wrong, heat-maps, throughput, runs, limits, stories of chunks.

    A page written with --every reloads itself in the browser.

    \b
    Example:
      odf report
      odf report --every 60 -o /srv/www/odf.html
      odf report --since 24h --json
    """
    if json_wanted and (target is not None or every is not None):
        raise InvalidInput("--json cannot be combined with --output or --every")
    if every is not None and target == "-":
        raise InvalidInput("--every needs a file to write; it cannot be combined with --output -")
    with open_ledger() as ledger:
        if json_wanted:
            _print_json(_figures(ledger, since))
        elif target == "-":
            output.write(_page(_figures(ledger, since), None))
        else:
            _write(ledger, Path(target or _FILE), since, every)


def _write(ledger: Ledger, target: Path, since: datetime | None, every: float | None) -> None:
    write = Path.write_text if every is None else _replace
    try:
        while True:
            page = _page(_figures(ledger, since), every)
            try:
                write(target, page, encoding="utf-8")
            except OSError as error:
                raise InvalidInput(f"{target} cannot be written ({error.strerror}); choose another file") from None
            output.say(f"Wrote {target}." if every is None else f"Wrote {target}, {time.strftime('%H:%M:%S')}.")
            if every is None:
                return
            time.sleep(every)
    except KeyboardInterrupt:
        output.write()


def _figures(ledger: Ledger, since: datetime | None) -> PageFigures:
    from opendataflow_dagster.insight import report as insight
    from opendataflow_dagster.insight.runs import find_runs
    from opendataflow_dagster.insight.stale import stale

    from .page.document import PageFigures

    now = datetime.now(UTC)
    current, failures = insight.report_ledger(ledger), insight.report_failures(ledger, since=since)
    maps = insight.report_maps(ledger, current.glance.datasets)
    return PageFigures(
        at=now,
        ledger=current,
        failures=failures,
        stale=stale(ledger, count=_STALE),
        throughput=insight.report_throughput(ledger, now),
        durations=insight.chunk_durations(ledger),
        runs=find_runs(ledger, count=_RUNS),
        maps=maps,
        stories=insight.report_stories(ledger, failures, current.glance, maps),
    )


def _page(figures: PageFigures, every: float | None) -> str:
    from opendataflow_dagster.model.text import escaped

    from .page.document import document

    return escaped(document(figures, every), keep="\n\t")


def _print_json(figures: PageFigures) -> None:
    output.print_json(
        {
            **output.jsonable(figures.ledger),
            "failures": figures.failures,
            "stale": figures.stale,
            "durations": figures.durations,
            "hours": figures.throughput.hours,
            "days": figures.throughput.days,
            "runs": figures.runs,
        }
    )


def _replace(target: Path, page: str, *, encoding: str) -> None:
    """A browser that reloads the page never finds half of it."""
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_text(page, encoding=encoding)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
