"""`odf throttle`, `odf pause` and `odf resume`: limit how much of a Job runs."""

from __future__ import annotations

from collections.abc import Callable

import click

from . import output
from .arguments import job_argument
from .options import Change, change_options
from .parsing import Concurrency


@click.command()
@job_argument
@click.argument("concurrency", metavar="N|none", type=Concurrency())
@change_options
def throttle(change: Change, jobid: str, concurrency: int | None) -> None:
    """Set the concurrency limit of a Job to N chunks; `none` removes it. Running chunks continue.

    \b
    Example:
      odf throttle average 2 --reason "the warehouse is slow"
      odf throttle average none
    """
    from opendataflow_dagster.protocol.throttle import throttle as verb

    chunks = "any number of chunks" if concurrency is None else f"at most {output.counted(concurrency, 'chunk')}"
    _limit(
        change,
        jobid,
        f"Job {jobid} runs {chunks} at a time.",
        lambda ledger, **who: verb(ledger, jobid, concurrency, **who),
    )


@click.command()
@job_argument
@change_options
def pause(change: Change, jobid: str) -> None:
    """Pause a Job: none of its chunks start until `odf resume`. Running chunks continue.

    \b
    Example:
      odf pause average --reason "release tonight"
    """
    from opendataflow_dagster.protocol.throttle import pause as verb

    _limit(change, jobid, f"Job {jobid} is paused.", lambda ledger, **who: verb(ledger, jobid, **who))


@click.command()
@job_argument
@change_options
def resume(change: Change, jobid: str) -> None:
    """Resume a paused Job.

    \b
    Example:
      odf resume average
    """
    from opendataflow_dagster.protocol.throttle import resume as verb

    _limit(change, jobid, f"Job {jobid} is resumed.", lambda ledger, **who: verb(ledger, jobid, **who))


def _limit(change: Change, jobid: str, sentence: str, verb: Callable[..., bool]) -> None:
    from opendataflow_dagster.protocol.throttle import room

    with change.ledger() as ledger:
        changed = verb(ledger, by=ledger.actor, reason=change.reason)
        now = output.jsonable(room(ledger, jobid))
    change.report({"jobid": jobid, "changed": changed, "room": now}, sentence if changed else f"No change: {sentence}")
