"""release: end a claim without a new version. The previous version stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..ledger import claims as ledger_claims
from ..ledger import runs
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.claim import Claim
from ..model.errors import ClaimLost
from ..model.ids import RunId

# A reason is for a person to read: a long stack trace is cut.
_MAX_REASON = 2000


def fail(ledger: Ledger, claim: Claim, reason: str) -> None:
    """FAILED, until a person or the retry policy of the Job resubmits it."""
    fail_many(ledger, [claim], [reason])


@gives_way
def fail_many(ledger: Ledger, claims: Sequence[Claim], reasons: Sequence[str]) -> None:
    with ledger.statement() as statement:
        released = ledger_claims.release(statement, claims, "failed", [_short(reason) for reason in reasons])
    if lost := [claim for claim in claims if claim.claim_id not in released]:
        raise ClaimLost(lost, "fail")


@gives_way
def abandon(ledger: Ledger, claims: Sequence[Claim], reason: str, *, begun: bool = True) -> None:
    """The crash rule, without waiting for the lease: RESUBMIT, or FAILED when the retry budget is exhausted.

    Work that has not begun becomes RESUBMIT, and that does not count as a retry.
    """
    outcome: Literal["abandoned", "unbegun"] = "abandoned" if begun else "unbegun"
    with ledger.statement() as statement:
        released = ledger_claims.release(statement, claims, outcome, [_short(reason)] * len(claims))
    if lost := [claim for claim in claims if claim.claim_id not in released]:
        raise ClaimLost(lost, "abandon")


@gives_way
def abandon_run(ledger: Ledger, run_id: RunId, reason: str) -> int:
    """A run is dead: abandon all that it holds. Returns the number of chunks."""
    with ledger.transaction() as transaction:
        released = ledger_claims.release_run(transaction, run_id, _short(reason))
        runs.end(transaction, run_id, failed=True)
    return released


def _short(reason: str) -> str:
    text = reason.replace("\x00", "").encode(errors="replace").decode().strip() or "no reason was given"
    return text if len(text) <= _MAX_REASON else text[: _MAX_REASON - 3] + "..."
