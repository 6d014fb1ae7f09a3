"""`odf heal`: restore what crashes and clocks have left."""

from __future__ import annotations

import click

from . import output
from .options import Act, acts


@click.command()
@click.option("--rebuild", is_flag=True, help="Also make the derived tables anew; claims wait meanwhile.")
@acts
def heal(act: Act, rebuild: bool) -> None:
    """Resubmit what a crash left behind, apply retry and cascade policies, ask refused chunks again.

    The sensors do this all the time; by hand it is safe at any moment.

    \b
    Example:
      odf heal
      odf heal --rebuild --json
      odf heal --dry-run
    """
    from opendataflow_dagster.protocol.heal import heal as verb

    with act.ledger() as ledger:
        done = verb(ledger, rebuild=rebuild, asked_by=": ".join(filter(None, (ledger.actor, act.reason))))
    act.report(output.jsonable(done), str(done))
