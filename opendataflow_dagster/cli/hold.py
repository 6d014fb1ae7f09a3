"""`odf hold`, `odf unhold` and `odf skip`: take chunks out of the flow and give them back."""

from __future__ import annotations

from typing import Any

import click

from .options import Change, change_options
from .selection import change_selected, selection_options


@click.command()
@selection_options
@change_options
def hold(change: Change, **selection: Any) -> None:
    """Put chunks on hold: no Job runs or reads them until `odf unhold`. A running chunk loses its claim.

    \b
    Example:
      odf hold flights 2024-01-03 --reason "waiting for a corrected file"
      odf hold --job average --all --dry-run
    """
    from opendataflow_dagster.protocol.hold import hold as verb

    change_selected(change, verb, "Held", "was already on hold", selection)


@click.command()
@selection_options
@change_options
def unhold(change: Change, **selection: Any) -> None:
    """Release chunks from hold. Each gets its previous status back; one that was running is resubmitted.

    \b
    Example:
      odf unhold flights 2024-01-03
      odf unhold flights --status HOLD
    """
    from opendataflow_dagster.protocol.hold import unhold as verb

    change_selected(change, verb, "Released", "was not on hold", selection)


@click.command()
@selection_options
@change_options
def skip(change: Change, **selection: Any) -> None:
    """Mark chunks as deliberately not produced. Consumers wait or continue, as the DataSet declares.

    \b
    Example:
      odf skip flights 2024-12-25 --reason "no flights on that day"
    """
    from opendataflow_dagster.protocol.hold import skip as verb

    change_selected(change, verb, "Skipped", "was already skipped", selection)
