"""renew: extend the leases of claims while their work goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ledger import claims as ledger_claims
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost


def renew(ledger: Ledger, claims: Sequence[Claim]) -> list[Claim]:
    """The claims with their new leases. ClaimLost names those that are lost; the others are renewed anyway."""
    with ledger.statement() as statement:
        renewed = ledger_claims.renew(statement, claims)
    if lost := [claim for claim in claims if claim.claim_id not in renewed]:
        raise ClaimLost(lost, "renew")
    return [replace(claim, lease_until=renewed[claim.claim_id]) for claim in claims]
