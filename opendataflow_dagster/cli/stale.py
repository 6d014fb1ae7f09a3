"""`odf stale` and `odf refresh`: what was made from an old version of an input, and making it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.ids import summary

from . import output
from .connection import open_ledger
from .options import Change, change_options, json_option

if TYPE_CHECKING:
    from opendataflow_dagster.model.ids import ChunkKey

    from .connection import Ledger

_datasets = click.argument("datasets", metavar="[DATASET]...", nargs=-1)


@click.command()
@_datasets
@click.option("--count", default=100, show_default=True, type=click.IntRange(min=1), help="Show at most so many.")
@json_option
def stale(datasets: tuple[str, ...], count: int, json_wanted: bool) -> None:
    """List stale chunks: READY, but made from a version of an input that is no longer current, or from a stale chunk.

    "further down" counts the stale chunks that have this one as their cause. Exits with 0.

    \b
    Example:
      odf stale
      odf stale delays --json
    """
    from opendataflow_dagster.insight.stale import cause_of, is_left_to_a_person
    from opendataflow_dagster.insight.stale import stale as insight

    with open_ledger() as ledger:
        found = insight(ledger, datasets, count=count)
    if json_wanted:
        output.print_json({"stale": found.total, "datasets": found.datasets, "chunks": found.chunks})
        return
    if not found.total:
        output.say("No chunk is stale.")
        return
    shown = "" if len(found.chunks) == found.total else f" (the first {len(found.chunks):,}; more with --count)"
    output.heading(f"{output.counted(found.total, 'stale chunk')}{shown}")
    output.table(
        ["chunk", "version", "cause", "since", "by", "further down"],
        [
            [
                str(chunk.key),
                str(chunk.version or ""),
                cause_of(chunk),
                output.moment(chunk.since),
                chunk.by or "",
                f"{chunk.below:,}" if chunk.below else "",
            ]
            for chunk in found.chunks
        ],
        right=["version", "further down"],
    )
    for dataset in found.datasets:
        if is_left_to_a_person(dataset):
            output.say(f"{dataset.datasetid}: {dataset.stale:,} are too many to be rebuilt unasked.")
    output.say(f"Make them again with: {' '.join(['odf refresh', *datasets])} (preview with --dry-run)")


@click.command()
@_datasets
@change_options
def refresh(change: Change, datasets: tuple[str, ...]) -> None:
    """Make the stale chunks again, of some DataSets or of all: exactly those, producers first.

    Stale chunks further up that they are made from come along. It is a resubmit: each chunk waits for its producers, so
    none is made twice. A chunk that would wait for one on HOLD, FAILED or SKIPPED is left.

    \b
    Example:
      odf refresh --dry-run
      odf refresh delays --reason "the source was corrected"
    """
    from opendataflow_dagster.protocol.refresh import Refreshed
    from opendataflow_dagster.protocol.refresh import refresh as verb

    def refreshed(ledger: Ledger) -> Refreshed:
        return verb(ledger, datasets, by=ledger.actor, reason=change.reason)

    if not change.yes and not change.dry_run:
        with open_ledger(by=change.by, rehearsal=True) as rehearsal:
            affected = refreshed(rehearsal).chunks
        change.confirm(len(affected), f"resubmit {summary(affected)}")
    with change.ledger() as ledger:
        done = refreshed(ledger)
    sentence = f"Resubmitted {summary(done.chunks)}." if done.chunks else "No chunk is stale; nothing to refresh."
    if done.left:
        sentence = f"Resubmitted {summary(done.chunks)}. " if done.chunks else ""
        sentence += f"Left, because a chunk further up is FAILED, SKIPPED or on HOLD: {_names(done.left)}."
    change.report({"chunks": done.chunks, "left": done.left}, sentence)


def _names(chunks: tuple[ChunkKey, ...]) -> str:
    return output.listing([str(chunk) for chunk in chunks], 5)
