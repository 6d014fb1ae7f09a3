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
from ..model.text import masked

# A reason is for a person to read: a long stack trace is cut.
_MAX_REASON = 2000
_MAX_TRACEBACK = 20_000


def fail(ledger: Ledger, claim: Claim, reason: str, traceback: str | None = None) -> None:
    """FAILED, until a person or the retry policy of the Job resubmits it. `traceback`: the lines of the author's files
    in which it failed."""
    fail_many(ledger, [claim], [reason], [traceback])


@gives_way
def fail_many(
    ledger: Ledger, claims: Sequence[Claim], reasons: Sequence[str], tracebacks: Sequence[str | None] | None = None
) -> None:
    short = [_short(reason) for reason in reasons]
    kept = [_storable(text, _MAX_TRACEBACK) if text else None for text in tracebacks or [None] * len(claims)]
    with ledger.statement() as statement:
        released = ledger_claims.fail(statement, claims, short, kept)
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
    return _storable(reason, _MAX_REASON) or "no reason was given"


def _storable(text: str, most: int) -> str:
    """Without what Postgres refuses, and without passwords."""
    text = masked(text.replace("\x00", "").encode(errors="replace").decode().strip())
    return text if len(text) <= most else text[: most - 3] + "..."
