"""renew: the work goes on, and the lease with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ledger import claims as ledger_claims
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost


def renew(ledger: Ledger, claims: Sequence[Claim]) -> list[Claim]:
    """The claims with their new lease. ClaimLost names those that are gone; the others are renewed all the same."""
    with ledger.statement() as statement:
        renewed = ledger_claims.renew(statement, claims)
    if lost := [one for one in claims if one.claim_id not in renewed]:
        raise ClaimLost(lost, "renew")
    return [replace(one, lease_until=renewed[one.claim_id]) for one in claims]
