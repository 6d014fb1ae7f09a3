"""`odf job begin|renew|end|fail`: for a scheduler of one's own, which does the work between the calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import ClaimLost, InvalidInput

from . import output
from .arguments import job_argument
from .options import Act, acts, answer

if TYPE_CHECKING:
    from opendataflow_dagster.model.claim import Claim

_run_argument = click.argument("run_id", metavar="RUN", type=click.IntRange(min=1))


@click.command()
@job_argument
@click.argument("dataid", required=False)
@click.option("--count", default=1, show_default=True, type=click.IntRange(1, 1000), help="How many chunks at most.")
@click.option("--external-id", metavar="ID", help="What your scheduler calls the run.")
@acts
def begin(act: Act, jobid: str, dataid: str | None, count: int, external_id: str | None) -> None:
    """Claim the next chunk of a Job, or this one, and begin a run; exit with 1 when nothing is ready.

    Then do the work, `odf job renew` before the lease ends, and `odf job end` or `odf job fail`.

    \b
    Example:
      odf job begin average
      odf job begin average 2024-01-15 --json
    """
    from opendataflow_dagster.engine.foreign_scheduler import begin_scheduled_run as verb

    if dataid is not None and count > 1:
        raise InvalidInput("--count is for the next chunks; leave it out when you name one")
    with act.ledger() as ledger:
        begun = verb(ledger, jobid, dataid, count=count, external_id=external_id)
    if begun is None:
        act.report({"run_id": None, "claims": []}, f"Nothing of {jobid} is ready; see why: odf why {jobid}")
        answer(False)
    else:
        names = ", ".join(one.dataid for one in begun.claims)
        lease = output.moment(begun.claims[0].lease_until)
        act.report(
            {"run_id": begun.run_id, "claims": [_object(one) for one in begun.claims]},
            f"Run {begun.run_id} of {jobid} has claimed {names}; the lease ends {lease}.",
        )


@click.command()
@_run_argument
@acts
def renew(act: Act, run_id: int) -> None:
    """The work goes on: the lease of all that the run holds begins anew. Exits with 129 when it has lost a chunk.

    \b
    Example:
      odf job renew 17
    """
    from opendataflow_dagster.engine.foreign_scheduler import renew_scheduled_run

    with act.ledger() as ledger:
        done = renew_scheduled_run(ledger, run_id)
    lease = output.moment(done.claims[0].lease_until)
    act.report(
        {"run_id": run_id, "claims": [_object(one) for one in done.claims], "lost": _names(done.lost)},
        f"The lease now ends {lease}.",
    )
    _refuse_lost(done.lost, "renew")


@click.command()
@_run_argument
@click.option("--location", "locations", multiple=True, metavar="[DATASET=]PATH", help="Where the new version is.")
@click.option("--rows", type=click.IntRange(min=0), help="How many rows it has.")
@acts
def end(act: Act, run_id: int, locations: tuple[str, ...], rows: int | None) -> None:
    """The work is done: publish what the run has claimed and still holds. Exits with 129 when it has lost a chunk.

    A DataSet with a root needs the folder of the new version, below the root. One without a root needs nothing.

    \b
    Example:
      odf job end 17
      odf job end 17 --location delays=/lake/delays/2024-01-15-run17 --rows 300
    """
    from opendataflow_dagster.engine.foreign_scheduler import end_scheduled_run as verb
    from opendataflow_dagster.engine.foreign_scheduler import outputs_of_run

    with act.ledger() as ledger:
        published = verb(ledger, run_id, _locations(locations, outputs_of_run(ledger, run_id)), row_count=rows)
    names = ", ".join(f"{one.datasetid} version {one.version}" for one in published.versions) or "nothing"
    act.report(
        {"run_id": run_id, "versions": published.versions, "lost": _names(published.lost)},
        f"Run {run_id} has published {names}.",
    )
    _refuse_lost(published.lost, "end")


@click.command()
@_run_argument
@acts
def fail(act: Act, run_id: int) -> None:
    """The work failed: the chunks are FAILED with --reason, until somebody resubmits them or a policy does.

    \b
    Example:
      odf job fail 17 --reason "disk full on node 3"
    """
    from opendataflow_dagster.engine.foreign_scheduler import fail_scheduled_run

    if not act.reason:
        raise InvalidInput("say why it failed with --reason; failures are grouped by it")
    with act.ledger() as ledger:
        claims = fail_scheduled_run(ledger, run_id, act.reason)
    names = ", ".join(one.dataid for one in claims)
    act.report({"run_id": run_id, "claims": [_object(one) for one in claims]}, f"Run {run_id} has failed: {names}.")


def _refuse_lost(lost: Sequence[Claim], verb: str) -> None:
    """Said after what was done: the others are as they should be."""
    if lost:
        raise ClaimLost(list(lost), verb)


def _names(claims: Sequence[Claim]) -> list[dict[str, object]]:
    return [{"jobid": one.jobid, "dataid": one.dataid, "claim_id": one.claim_id} for one in claims]


def _locations(texts: tuple[str, ...], outputs: list[str]) -> dict[str, str]:
    """`DATASET=PATH`; a bare PATH where there is one output."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if equals and name in outputs:
            found[name] = path
        elif len(outputs) == 1:
            found[outputs[0]] = text
        else:
            raise InvalidInput(f"{text} says not of which DataSet; write {outputs[0]}=PATH")
    return found


def _object(claim: Claim) -> dict[str, object]:
    return {
        "jobid": claim.jobid,
        "dataid": claim.dataid,
        "claim_id": claim.claim_id,
        "outputs": claim.outputs,
        "attempt": claim.attempt,
        "lease_until": claim.lease_until,
        "inputs": claim.inputs,
        "locations": {f"{one.datasetid}/{one.dataid}": one.location for one in claim.manifests},
    }
