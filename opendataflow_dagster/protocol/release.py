"""release: the claim ends without a version. The previous one stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..ledger import claims as ledger_claims
from ..ledger import runs
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost
from ..model.ids import RunId

# A reason is for a person; a stack trace of a megabyte is not.
_MAX_REASON = 2000


def fail(ledger: Ledger, claim: Claim, reason: str) -> None:
    """The work failed: FAILED, until a person or the Job's retry policy resubmits it."""
    fail_many(ledger, [claim], [reason])


def fail_many(ledger: Ledger, claims: Sequence[Claim], reasons: Sequence[str]) -> None:
    with ledger.statement() as statement:
        released = ledger_claims.release(statement, claims, "failed", [_short(one) for one in reasons])
    if lost := [one for one in claims if one.claim_id not in released]:
        raise ClaimLost(lost, "fail")


def abandon(ledger: Ledger, claims: Sequence[Claim], reason: str, *, begun: bool = True) -> None:
    """The work was given up: RESUBMIT, or FAILED at the attempt cap, as after a crash but at once.

    What has not begun has not failed at anything: it is RESUBMIT, and nothing is counted.
    """
    outcome: Literal["abandoned", "unbegun"] = "abandoned" if begun else "unbegun"
    with ledger.statement() as statement:
        released = ledger_claims.release(statement, claims, outcome, [_short(reason)] * len(claims))
    if lost := [one for one in claims if one.claim_id not in released]:
        raise ClaimLost(lost, "abandon")


def abandon_run(ledger: Ledger, run_id: RunId, reason: str) -> int:
    """A run is dead: all that it still held is abandoned; how many chunks that were."""
    with ledger.transaction() as transaction:
        released = ledger_claims.release_run(transaction, run_id, _short(reason))
        runs.end(transaction, run_id, failed=True)
    return released


def _short(reason: str) -> str:
    text = reason.replace("\x00", "").encode(errors="replace").decode().strip() or "no reason was given"
    return text if len(text) <= _MAX_REASON else text[: _MAX_REASON - 3] + "..."
