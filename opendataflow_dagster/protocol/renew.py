"""renew: extend the leases of claims while their work goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ledger import claims as ledger_claims
from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost


@dataclass(frozen=True, kw_only=True, slots=True)
class Renewal:
    #: With their new leases.
    renewed: tuple[Claim, ...]
    #: Another transaction holds a row of theirs: try again soon, while the lease lasts.
    busy: tuple[Claim, ...]
    lost: tuple[Claim, ...]


def renew(ledger: Ledger, claims: Sequence[Claim]) -> list[Claim]:
    """The claims with their leases. ClaimLost names those that are lost; the others are renewed anyway."""
    renewal = renew_many(ledger, claims)
    if renewal.lost:
        raise ClaimLost(list(renewal.lost), "renew")
    return [*renewal.renewed, *renewal.busy]


def renew_many(ledger: Ledger, claims: Sequence[Claim]) -> Renewal:
    """Each claim by itself. Waits for nobody."""
    with ledger.statement() as statement:
        leases, busy = ledger_claims.renew(statement, claims)
    return Renewal(
        renewed=tuple(
            replace(claim, lease_until=leases[claim.claim_id])
            for claim in claims
            if claim.claim_id in leases and claim.claim_id not in busy
        ),
        busy=tuple(claim for claim in claims if claim.claim_id in busy),
        lost=tuple(claim for claim in claims if claim.claim_id not in leases),
    )
