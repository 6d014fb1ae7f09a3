"""Arguments that many commands have: a DataSet, a Job, some chunks. A shell completes their names from the ledger."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

UNITS: Final = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400}


class Number(click.FloatRange):
    """Of 0 or more, and finite: `nan` is no number of seconds."""

    def __init__(self, *, min: float = 0, min_open: bool = False, max: float) -> None:
        super().__init__(min=min, max=max, min_open=min_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return float(number)


class Moment(click.ParamType[datetime]):
    """`2024-01-05`, `2024-01-05 14:00` (local time), or how long ago: `30min`, `3h`, `2d`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        text = str(value).strip()
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text[len(number) :].strip()
        try:
            if number.isdecimal() and unit in UNITS:
                # Whole seconds, so that it can be said and typed again exactly.
                return datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=int(number) * UNITS[unit])
            # Without a zone it is the time of the operator's clock.
            return datetime.fromisoformat(text).astimezone()
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is no time; write 2024-01-05, '2024-01-05 14:00', or how long ago: 3h", param, ctx)


def _names(index: int) -> Any:
    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in _known()[index] if name.startswith(incomplete)]

    return complete


def _known() -> tuple[list[str], list[str]]:
    """DataSets and Jobs. A key press never starts a server, and never shows an error."""
    from opendataflow_dagster.ledger import registry
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
    from opendataflow_dagster.ledger.settings import configured_url, home
    from opendataflow_dagster.model.errors import OpenDataFlowError

    try:
        url = configured_url()
        if url is None:
            server = EmbeddedPostgres(home())
            if not server.status().running:
                return [], []
            url = server.url()
        with Ledger(url, patience=timedelta(seconds=1)) as ledger, ledger.statement() as statement:
            known = registry.registered(statement)
    except OpenDataFlowError:
        return [], []
    return sorted(known.datasets), sorted({*known.inputs, *known.outputs})


dataset_argument = click.argument("datasetid", metavar="DATASET", shell_complete=_names(0))
job_argument = click.argument("jobid", metavar="JOB", shell_complete=_names(1))
job_option = click.option("--job", "jobid", metavar="JOB", help="Only of this Job.", shell_complete=_names(1))
optional_job = click.argument("jobid", metavar="[JOB]", required=False, shell_complete=_names(1))
optional_dataset = click.argument("datasetid", metavar="[DATASET]", required=False, shell_complete=_names(0))
some_chunks = click.argument("chunks", metavar="[DATAID|FROM..TO]...", nargs=-1)
