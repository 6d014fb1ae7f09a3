"""`odf heal`: recover from crashes and expired leases."""

from __future__ import annotations

import click

from . import output
from .options import Change, change_options


@click.command()
@click.option("--rebuild", is_flag=True, help="Also compare every chunk with the derived tables.")
@change_options
def heal(change: Change, rebuild: bool) -> None:
    """Resubmit chunks whose lease expired, apply retry policies, rebuild stale chunks, re-evaluate blocked ones.

    Stale chunks are rebuilt if their DataSet declares on_new_input="rebuild" and has no more than 31 of them. The
    sensors do all this continuously. It is safe to run at any time.

    \b
    Example:
      odf heal
      odf heal --rebuild --json
      odf heal --dry-run
    """
    from opendataflow_dagster.protocol.heal import heal as verb

    with change.ledger() as ledger:
        healed = verb(ledger, rebuild=rebuild, asked_by=": ".join(filter(None, (ledger.actor, change.reason))))
    change.report(output.jsonable(healed), str(healed))
