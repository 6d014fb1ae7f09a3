"""Settling: the chunks of Jobs whose definition changed are evaluated again, in portions, beside all other work."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ..model.errors import LedgerConflict
from ..model.ids import JobId
from .database import Ledger
from .retry import retry_conflicts

#: A transaction holds the rows that it corrects, for some tens of microseconds each.
PORTION: Final = 1000
#: What another transaction holds for longer is left to the next claim or heal.
PATIENCE_SECONDS: Final = 5.0


def settle(ledger: Ledger, jobid: JobId | None = None) -> None:
    """This Job, or all. A Job that is not settled yet is claimed by nobody, so a claim calls this, and heal does."""
    place: list[str] | None = [jobid or "", ""]

    def step() -> list[str] | None:
        with ledger.statement() as statement:
            left: list[str] | None = statement.value("settle", jobid=jobid, count=PORTION, place=place)
            return left

    with suppress(LedgerConflict):  # the next claim or heal goes on
        while place is not None:
            place = retry_conflicts(step, PATIENCE_SECONDS)
