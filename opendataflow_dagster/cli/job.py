"""`odf job`: the Jobs."""

from __future__ import annotations

import click

from .frame import LazyGroup

_CLI = "opendataflow_dagster.cli"


@click.group(
    cls=LazyGroup,
    lazy={
        "begin": f"{_CLI}.job_run:begin",
        "renew": f"{_CLI}.job_run:renew",
        "end": f"{_CLI}.job_run:end",
        "fail": f"{_CLI}.job_run:fail",
    },
)
def job() -> None:
    """Jobs: begin, renew, end or fail a run by hand.

    \b
    Example:
      odf job begin average
      odf job end 17
    """
