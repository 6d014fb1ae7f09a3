"""`odf status`: all DataSets at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import output
from .options import as_json, open_ledger

if TYPE_CHECKING:
    from opendataflow_dagster.insight.status import DatasetStatus, StatusOverview
    from opendataflow_dagster.ledger.overview import RunningChunk
    from opendataflow_dagster.ledger.steering import JobControl

_WORDS = ("READY", "RUNNING", "PENDING", "RESUBMIT", "FAILED", "HOLD", "SKIPPED")


@click.command()
@click.argument("datasets", metavar="[DATASET]...", nargs=-1)
@click.option("--failed", "only_failed", is_flag=True, help="Only DataSets with FAILED chunks.")
@as_json
def status(datasets: tuple[str, ...], only_failed: bool, json_wanted: bool) -> None:
    """All DataSets at a glance: chunks by status, what waits and since when, what runs, and when it will be done.

    \b
    Example:
      odf status
      odf status flights delays
      odf status --failed --json
    """
    from opendataflow_dagster.insight.status import status as look
    from opendataflow_dagster.model.errors import UnknownName

    with open_ledger() as ledger:
        glance = look(ledger)
    if unknown := set(datasets) - {one.datasetid for one in glance.datasets}:
        raise UnknownName(f"there is no DataSet {min(unknown)}; see them all with: odf status")
    shown = [
        one
        for one in glance.datasets
        if (not datasets or one.datasetid in datasets) and (not only_failed or one.counts.get("FAILED"))
    ]
    running = [one for one in glance.running if not datasets or one.datasetid in datasets]
    jobs = {one.jobid for one in shown}
    limits = [one for one in glance.controls if one.jobid in jobs]
    if json_wanted:
        output.print_json({"datasets": [as_object(one) for one in shown], "limits": limits, "running": running})
    else:
        show(shown, limits, running)


def show(datasets: list[DatasetStatus], controls: list[JobControl], running: list[RunningChunk]) -> None:
    if not datasets:
        output.say("No DataSets to show. Register some: odf dataset add, or odf apply.")
        return
    used = [word for word in _WORDS if any(one.counts.get(word) for one in datasets)]
    other = any(set(one.counts) - set(_WORDS) for one in datasets)
    numbers = [*used, *(["other"] if other else []), "done"]
    output.table(
        ["DATASET", *numbers, "waits since", "ETA"],
        [[one.datasetid, *_counts(one, used, other), _waits(one), output.span(one.eta)] for one in datasets],
        right=numbers,
    )
    for limit in controls:
        reason = f" ({limit.reason})" if limit.reason else ""
        if limit.paused is not None:
            output.say(f"job {limit.jobid} is paused since {output.moment(limit.paused)}{reason}")
        elif limit.concurrency is not None:
            output.say(f"job {limit.jobid} runs at most {limit.concurrency} chunks at a time{reason}")
    if running:
        output.heading(f"\nRunning now ({len(running)})" if len(running) < 20 else "\nRunning now (the oldest 20)")
        output.table(
            ["chunk", "job", "run", "attempt", "since", "lease ends"],
            [
                [
                    f"{one.datasetid}/{one.dataid}",
                    one.jobid,
                    str(one.run_id or ""),
                    str(one.attempt),
                    output.moment(one.since),
                    output.moment(one.lease_until),
                ]
                for one in running
            ],
        )


def as_object(one: DatasetStatus) -> dict[str, object]:
    found: dict[str, object] = output.jsonable(one)
    return {**found, "chunks": one.chunks, "progress": one.progress}


def glance_of(glance: StatusOverview) -> None:
    show(list(glance.datasets), list(glance.controls), list(glance.running))


def _counts(one: DatasetStatus, used: list[str], other: bool) -> list[output.Cell]:
    cells: list[output.Cell] = [
        (f"{one.counts[word]:,}", output.STYLES[word]) if one.counts.get(word) else "" for word in used
    ]
    if other:
        strange = sum(count for word, count in one.counts.items() if word not in _WORDS)
        cells.append((f"{strange:,}", "bold red") if strange else "")
    # 99.97 % is not all.
    cells.append("" if one.progress is None else f"{int(one.progress * 100)} %")
    return cells


def _waits(one: DatasetStatus) -> str:
    if one.oldest_waiting is None:
        return ""
    blocked = f", {one.blocked:,} blocked" if one.blocked else ""
    return f"{output.moment(one.oldest_waiting)}{blocked}"
