"""Which chunks a command changes, and how it reports them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.model.ids import summary

from .arguments import chunks_argument, job_option, optional_dataset
from .options import combined

if TYPE_CHECKING:
    from opendataflow_dagster.model.ids import ChunkKey

    from .connection import Ledger
    from .options import Change

#: For a command on chunks of a DataSet or Job: by name, range or status, or all.
selection_options = combined(
    optional_dataset,
    chunks_argument,
    job_option,
    click.option("--status", "statuses", multiple=True, metavar="STATUS", help="Only chunks with this status."),
    click.option("--all", "everything", is_flag=True, help="All chunks of the DataSet or Job."),
)


def selected(
    ledger: Ledger,
    *,
    datasetid: str | None,
    jobid: str | None,
    chunks: Sequence[str],
    statuses: Sequence[str],
    everything: bool,
    other_code: bool = False,
) -> list[ChunkKey]:
    """With --job, the first argument is a dataid, too."""
    from opendataflow_dagster.insight.selection import Selection, select_keys

    if jobid is not None and datasetid is not None:
        chunks, datasetid = (datasetid, *chunks), None
    if datasetid is None and jobid is None:
        raise InvalidInput("no chunks selected: name a DataSet and its chunks, or a Job with --job")
    wanted = Selection(
        datasetid=datasetid,
        jobid=jobid,
        words=chunks,
        statuses=[status.upper() for status in statuses] or None,
        other_code=other_code,
    )
    if not chunks and not wanted.filters and not everything:
        raise InvalidInput(f"{datasetid or jobid}: no chunks selected; pass dataids, a range A..B, --status or --all")
    return select_keys(ledger, wanted)


def change_selected(
    change: Change, verb: Callable[..., list[ChunkKey]], past: str, unchanged: str, selection: dict[str, Any]
) -> None:
    """Confirm, apply the verb to the selected chunks, and report; `unchanged` completes "No change: X ..."."""
    with change.ledger() as ledger:
        keys = selected(ledger, **selection)
        change.confirm(len(keys), f"{verb.__name__} {summary(keys)}")
        changed = verb(ledger, keys, by=ledger.actor, reason=change.reason)
    sentence = f"{past} {summary(changed)}." if changed else f"No change: {summary(keys)} {unchanged}."
    change.report({"chunks": changed}, sentence)
