"""`odf throttle`, `pause`, `resume`: how much of a Job runs, changed while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from . import output
from .arguments import job_argument
from .options import Act, acts


class _Count(click.ParamType[int | None]):
    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if str(value) == "none":
            return None
        if not str(value).isdecimal():
            self.fail(f"{value!r} is no number of chunks; give one, or none for no limit", param, ctx)
        return int(value)


@click.command()
@job_argument
@click.argument("concurrency", metavar="N|none", type=_Count())
@acts
def throttle(act: Act, jobid: str, concurrency: int | None) -> None:
    """At most N chunks of a Job run at a time from now on; `none` takes the limit away. What runs goes on.

    \b
    Example:
      odf throttle average 2 --reason "the warehouse is slow"
      odf throttle average none
    """
    from opendataflow_dagster.protocol.throttle import throttle as verb

    said = "Any number of chunks" if concurrency is None else f"At most {concurrency} chunks"
    _steer(
        act, jobid, f"{said} of {jobid} run at a time", lambda ledger, **how: verb(ledger, jobid, concurrency, **how)
    )


@click.command()
@job_argument
@acts
def pause(act: Act, jobid: str) -> None:
    """No chunk of a Job begins until `odf resume`; what runs goes on.

    \b
    Example:
      odf pause average --reason "release tonight"
    """
    from opendataflow_dagster.protocol.throttle import pause as verb

    _steer(act, jobid, f"Job {jobid} is paused", lambda ledger, **how: verb(ledger, jobid, **how))


@click.command()
@job_argument
@acts
def resume(act: Act, jobid: str) -> None:
    """A paused Job goes on.

    \b
    Example:
      odf resume average
    """
    from opendataflow_dagster.protocol.throttle import resume as verb

    _steer(act, jobid, f"Job {jobid} goes on", lambda ledger, **how: verb(ledger, jobid, **how))


def _steer(act: Act, jobid: str, sentence: str, verb: Callable[..., bool]) -> None:
    from opendataflow_dagster.protocol.throttle import room

    with act.ledger() as ledger:
        changed = verb(ledger, by=ledger.actor, reason=act.reason)
        now = output.jsonable(room(ledger, jobid))
    before = "" if changed else " It was so before."
    act.report({"jobid": jobid, "changed": changed, "room": now}, f"{sentence}.{before}")
