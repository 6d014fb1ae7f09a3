"""`odf job begin|renew|end|fail`: for other schedulers, which do the work between the calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import ClaimLost, InvalidInput
from opendataflow_dagster.model.text import nearest

from . import output
from .arguments import job_argument
from .options import Change, change_options, exit_with_answer

if TYPE_CHECKING:
    from opendataflow_dagster.model.claim import Claim

_run_argument = click.argument("run_id", metavar="RUN", type=click.IntRange(min=1))


@click.command()
@job_argument
@click.argument("dataid", required=False)
@click.option("--count", default=1, show_default=True, type=click.IntRange(1, 1000), help="Maximum number of chunks.")
@click.option("--external-id", metavar="ID", help="Your scheduler's name for the run.")
@change_options
def begin(change: Change, jobid: str, dataid: str | None, count: int, external_id: str | None) -> None:
    """Begin a run: claim the next chunk of a Job, or the given one. Exits with 1 if no chunk is ready.

    Then do the work, call `odf job renew` before the lease expires, and finish with `odf job end` or `odf job fail`.

    \b
    Example:
      odf job begin average
      odf job begin average 2024-01-15 --json
    """
    from opendataflow_dagster.engine.foreign_scheduler import begin_scheduled_run as verb

    if dataid is not None and count > 1:
        raise InvalidInput("--count cannot be combined with a dataid")
    with change.ledger() as ledger:
        begun = verb(ledger, jobid, dataid, count=count, external_id=external_id)
    if begun is None:
        change.report({"run_id": None, "claims": []}, f"No chunk of job {jobid} is ready; see: odf why {jobid}")
        exit_with_answer(False)
    else:
        lease = output.moment(begun.claims[0].lease_until)
        change.report(
            {"run_id": begun.run_id, "claims": _claim_objects(begun.claims)},
            f"Run {begun.run_id} of job {jobid} claimed {_dataids(begun.claims)}; the lease expires {lease}.",
        )


@click.command()
@_run_argument
@change_options
def renew(change: Change, run_id: int) -> None:
    """Renew the lease of all chunks that a run holds. Exits with 129 if it has lost one.

    \b
    Example:
      odf job renew 17
    """
    from opendataflow_dagster.engine.foreign_scheduler import renew_scheduled_run

    with change.ledger() as ledger:
        renewed = renew_scheduled_run(ledger, run_id)
    lease = output.moment(renewed.claims[0].lease_until)
    change.report(
        {"run_id": run_id, "claims": _claim_objects(renewed.claims), "lost": _lost_objects(renewed.lost)},
        f"Run {run_id}: the lease now expires {lease}.",
    )
    if renewed.lost:
        raise ClaimLost(list(renewed.lost), "renew")


@click.command()
@_run_argument
@click.option("--location", "locations", multiple=True, metavar="[DATASET=]PATH", help="Folder of the new version.")
@click.option("--rows", type=click.IntRange(min=0), help="Number of rows.")
@change_options
def end(change: Change, run_id: int, locations: tuple[str, ...], rows: int | None) -> None:
    """End a run: publish the chunks that it holds. Exits with 129 if it has lost one.

    A DataSet with a root needs --location: the folder of the new version, below the root.

    \b
    Example:
      odf job end 17
      odf job end 17 --location delays=/lake/delays/2024-01-15-run17 --rows 300
    """
    from opendataflow_dagster.engine.foreign_scheduler import end_scheduled_run as verb
    from opendataflow_dagster.engine.foreign_scheduler import outputs_of_run

    with change.ledger() as ledger:
        ended = verb(ledger, run_id, _locations(locations, outputs_of_run(ledger, run_id)), row_count=rows)
    versions = ", ".join(f"{version.datasetid} version {version.version}" for version in ended.versions)
    change.report(
        {"run_id": run_id, "versions": ended.versions, "lost": _lost_objects(ended.lost)},
        f"Run {run_id} published {versions or 'nothing'}.",
    )
    if ended.lost:
        raise ClaimLost(list(ended.lost), "end")


@click.command()
@_run_argument
@change_options
def fail(change: Change, run_id: int) -> None:
    """Fail a run: its chunks become FAILED with --reason until they are resubmitted or retried.

    \b
    Example:
      odf job fail 17 --reason "disk full on node 3"
    """
    from opendataflow_dagster.engine.foreign_scheduler import fail_scheduled_run

    if not change.reason:
        raise InvalidInput(f"run {run_id}: --reason is required; failures are grouped by it")
    with change.ledger() as ledger:
        claims = fail_scheduled_run(ledger, run_id, change.reason)
    sentence = f"Run {run_id} failed: {_dataids(claims)}."
    change.report({"run_id": run_id, "claims": _claim_objects(claims)}, sentence)


def _dataids(claims: Sequence[Claim]) -> str:
    return ", ".join(claim.dataid for claim in claims)


def _locations(texts: tuple[str, ...], outputs: list[str]) -> dict[str, str]:
    """`DATASET=PATH`; a bare PATH if there is one output."""
    locations: dict[str, str] = {}
    for text in texts:
        datasetid, equals, path = text.partition("=")
        if equals and datasetid in outputs:
            locations[datasetid] = path
        elif equals and (close := nearest(datasetid, outputs)):
            raise InvalidInput(f"--location {text}: the run does not produce {datasetid}; did you mean {close[0]}?")
        elif len(outputs) == 1:
            locations[outputs[0]] = text
        else:
            raise InvalidInput(f"--location {text} does not name its DataSet; use {outputs[0]}=PATH")
    return locations


def _lost_objects(claims: Sequence[Claim]) -> list[dict[str, object]]:
    return [{"jobid": claim.jobid, "dataid": claim.dataid, "claim_id": claim.claim_id} for claim in claims]


def _claim_objects(claims: Sequence[Claim]) -> list[dict[str, object]]:
    return [
        {
            "jobid": claim.jobid,
            "dataid": claim.dataid,
            "claim_id": claim.claim_id,
            "outputs": claim.outputs,
            "attempt": claim.attempt,
            "lease_until": claim.lease_until,
            "inputs": claim.inputs,
            "locations": {f"{pin.datasetid}/{pin.dataid}": pin.location for pin in claim.manifests},
        }
        for claim in claims
    ]
