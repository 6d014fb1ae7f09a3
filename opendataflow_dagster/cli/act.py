"""`odf hold`, `unhold`, `skip`, `cancel`: a person takes chunks out of the flow, and gives them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput

from .options import Act, acts
from .selection import chooses, chosen, spoken

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.model.ids import ChunkKey


@click.command()
@chooses
@acts
def hold(act: Act, **chosen_by: Any) -> None:
    """Nobody may run or read these chunks until `odf unhold`; a running one loses its claim.

    \b
    Example:
      odf hold flights 2024-01-03 --reason "the source will send it again"
      odf hold --job average --all --dry-run
    """
    from opendataflow_dagster.protocol.hold import hold as verb

    _change(act, "hold", "Held", "was on hold before", verb, chosen_by)


@click.command()
@chooses
@acts
def unhold(act: Act, **chosen_by: Any) -> None:
    """Give chunks back the status that they had; one that was running is resubmitted.

    \b
    Example:
      odf unhold flights 2024-01-03
      odf unhold flights --status HOLD
    """
    from opendataflow_dagster.protocol.hold import unhold as verb

    _change(act, "unhold", "Gave back", "was not on hold", verb, chosen_by)


@click.command()
@chooses
@acts
def skip(act: Act, **chosen_by: Any) -> None:
    """These chunks are deliberately not produced; consumers wait or pass, as the DataSet declares.

    \b
    Example:
      odf skip flights 2024-12-25 --reason "no flights on that day"
    """
    from opendataflow_dagster.protocol.hold import skip as verb

    _change(act, "skip", "Skipped", "was skipped before", verb, chosen_by)


@click.command()
@chooses
@click.option("--run", "run_id", type=click.IntRange(min=1), help="All that this run holds, instead of chunks.")
@acts
def cancel(act: Act, run_id: int | None, **chosen_by: Any) -> None:
    """End what runs: the chunks are FAILED and can be resubmitted; whoever still works on them publishes nothing.

    \b
    Example:
      odf cancel delays 2024-01-14
      odf cancel --run 17 --reason "wrong release"
    """
    from opendataflow_dagster.insight.runs import find_run
    from opendataflow_dagster.protocol.cancel import cancel as verb
    from opendataflow_dagster.protocol.cancel import cancel_run

    if run_id is None:
        _change(act, "cancel", "Cancelled", "was not running", verb, chosen_by)
        return
    if any(chosen_by.values()):
        raise InvalidInput("give --run or chunks, not both")
    with act.ledger() as ledger:
        found = find_run(ledger, run_id)
        act.confirm(found.holds, f"cancel run {run_id} of {found.jobid}, which holds {found.holds:,} chunks")
        done = cancel_run(ledger, run_id, by=ledger.actor, reason=act.reason)
    held = f", which held {spoken(done)}" if done else ", which held nothing"
    act.report({"chunks": done, "run_id": run_id}, f"Cancelled run {run_id}{held}.")


def _change(
    act: Act,
    verb: str,
    past: str,
    otherwise: str,
    call: Callable[..., list[ChunkKey]],
    chosen_by: dict[str, Any],
) -> None:
    with act.ledger() as ledger:
        keys = chosen(ledger, **chosen_by)
        act.confirm(len(keys), f"{verb} {spoken(keys)}")
        done = _called(call, ledger, keys, act.reason)
    act.report({"chunks": done}, f"{past} {spoken(done)}." if done else f"No change: {spoken(keys)} {otherwise}.")


def _called(
    call: Callable[..., list[ChunkKey]], ledger: Ledger, keys: Sequence[ChunkKey], reason: str
) -> list[ChunkKey]:
    return call(ledger, keys, by=ledger.actor, reason=reason)
