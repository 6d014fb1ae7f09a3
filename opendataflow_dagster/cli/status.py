"""`odf status`: all DataSets at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from . import deadlines, output
from .connection import open_ledger
from .options import json_option

if TYPE_CHECKING:
    from opendataflow_dagster.insight.deadlines import Deadlines
    from opendataflow_dagster.insight.status import DatasetStatus, JobControl, RunningChunk

_STATUSES = ("READY", "RUNNING", "PENDING", "RESUBMIT", "FAILED", "HOLD", "SKIPPED")
_STALE = "stale"


@click.command()
@click.argument("datasets", metavar="[DATASET]...", nargs=-1)
@click.option("--failed", "only_failed", is_flag=True, help="Only DataSets with FAILED chunks.")
@json_option
def status(datasets: tuple[str, ...], only_failed: bool, json_wanted: bool) -> None:
    """Show all DataSets: chunks by status, what is missing, waits or is late, what is running, and the ETA.

    Expected are the declared partitions up to now; without declared partitions, what exists and what consumers need.

    \b
    Example:
      odf status
      odf status flights delays
      odf status --failed --json
    """
    from opendataflow_dagster.insight.status import status as insight
    from opendataflow_dagster.model.errors import UnknownName
    from opendataflow_dagster.model.text import did_you_mean

    with open_ledger() as ledger:
        glance = insight(ledger)
    known = [dataset.datasetid for dataset in glance.datasets]
    if unknown := set(datasets) - set(known):
        advice = did_you_mean(min(unknown), known, "list them with: odf status")
        raise UnknownName(f"there is no DataSet {min(unknown)}; {advice}")
    shown = [
        dataset
        for dataset in glance.datasets
        if (not datasets or dataset.datasetid in datasets) and (not only_failed or dataset.counts.get("FAILED"))
    ]
    late = glance.deadlines.of({dataset.datasetid for dataset in shown})
    running = [chunk for chunk in glance.running if not datasets or chunk.datasetid in datasets]
    jobs = {dataset.jobid for dataset in shown}
    controls = [control for control in glance.controls if control.jobid in jobs]
    if json_wanted:
        objects = [
            {
                **output.jsonable(dataset),
                "chunks": dataset.chunks,
                "expected": dataset.expected,
                "progress": dataset.progress,
            }
            for dataset in shown
        ]
        output.print_json({"datasets": objects, "limits": controls, "running": running, "deadlines": late})
    else:
        show(shown, controls, running, late)


def show(
    datasets: Sequence[DatasetStatus],
    controls: Sequence[JobControl],
    running: Sequence[RunningChunk],
    late: Deadlines,
) -> None:
    if not datasets:
        output.say("No DataSets to show. Register some with: odf dataset add, or odf apply.")
        return
    used = [name for name in _STATUSES if any(dataset.counts.get(name) for dataset in datasets)]
    if any(dataset.stale for dataset in datasets):
        used.insert(used.index("READY") + 1, _STALE)
    has_other = any(set(dataset.counts) - set(_STATUSES) for dataset in datasets)
    has_missing = any(dataset.missing for dataset in datasets)
    has_other_code = any(dataset.other_code for dataset in datasets)
    numbers = [*used, *(["other"] if has_other else []), *(["missing"] if has_missing else []), "done"]
    numbers += ["other code"] if has_other_code else []
    output.table(
        ["DATASET", *numbers, "waiting since", "ETA"],
        [
            [
                dataset.datasetid,
                *_counts(dataset, used, has_other),
                *([(f"{dataset.missing:,}", "bold yellow") if dataset.missing else ""] if has_missing else []),
                # Rounded down: 99.97 % is not done.
                "" if dataset.progress is None else f"{int(dataset.progress * 100)} %",
                *([f"{dataset.other_code:,}" if dataset.other_code else ""] if has_other_code else []),
                _waiting(dataset),
                output.span(dataset.eta),
            ]
            for dataset in datasets
        ],
        right=numbers,
    )
    _say_stale(datasets)
    if has_other_code:
        output.say(
            "Other code: READY chunks made by other code than the current. Which: odf chunks DATASET --other-code"
        )
    obstacles = [(dataset, dataset.obstacle) for dataset in datasets if dataset.obstacle is not None]
    if obstacles:
        output.heading("\nMissing or waiting")
        output.table(
            ["DATASET", "missing", "for example", "waits for"],
            [
                [dataset.datasetid, f"{dataset.missing:,}" if dataset.missing else "", obstacle.dataid, obstacle.reason]
                for dataset, obstacle in obstacles
            ],
            right=["missing"],
        )
    deadlines.show(late)
    for control in controls:
        reason = f" ({control.reason})" if control.reason else ""
        if control.paused is not None:
            output.say(f"job {control.jobid} is paused since {output.moment(control.paused)}{reason}")
        elif control.concurrency is not None:
            output.say(
                f"job {control.jobid} runs at most {output.counted(control.concurrency, 'chunk')} at a time{reason}"
            )
    if running:
        output.heading(f"\nRunning ({len(running)})" if len(running) < 20 else "\nRunning (the oldest 20)")
        output.table(
            ["chunk", "job", "run", "attempt", "since", "lease expires"],
            [
                [
                    f"{chunk.datasetid}/{chunk.dataid}",
                    chunk.jobid,
                    str(chunk.run_id or ""),
                    str(chunk.attempt),
                    output.moment(chunk.since),
                    output.moment(chunk.lease_until),
                ]
                for chunk in running
            ],
        )


def _say_stale(datasets: Sequence[DatasetStatus]) -> None:
    if not (total := sum(dataset.stale for dataset in datasets)):
        return
    are = "is" if total == 1 else "are"
    output.say(
        f"{output.counted(total, 'READY chunk')} {are} stale: an input has a newer version. "
        f"Why: odf stale. Make them again: odf refresh"
    )
    for dataset in datasets:
        if dataset.stale_is_left:
            output.say(
                f"{dataset.datasetid}: {dataset.stale:,} are too many to be rebuilt unasked; "
                f"run: odf refresh {dataset.datasetid}"
            )


def _counts(dataset: DatasetStatus, used: Sequence[str], has_other: bool) -> list[output.Cell]:
    numbers = {**dataset.counts, _STALE: dataset.stale}
    styles = {**output.STYLES, _STALE: "bold yellow"}
    cells: list[output.Cell] = [(f"{numbers[name]:,}", styles[name]) if numbers.get(name) else "" for name in used]
    if has_other:
        other = sum(count for name, count in dataset.counts.items() if name not in _STATUSES)
        cells.append((f"{other:,}", "bold red") if other else "")
    return cells


def _waiting(dataset: DatasetStatus) -> str:
    if dataset.oldest_waiting is None:
        return ""
    blocked = f", {dataset.blocked:,} blocked" if dataset.blocked else ""
    return f"{output.moment(dataset.oldest_waiting)}{blocked}"
