"""The claims that a run holds: renewed by one thread while the work goes on, abandoned at once when it ends badly."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from logging import Logger
from time import monotonic
from types import TracebackType

from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost, OpenDataFlowError
from ..model.ids import ClaimId
from ..protocol.release import abandon
from ..protocol.renew import renew


class Leases:
    """Renews at a third of the shortest lease, so that two renewals may fail before one runs out."""

    def __init__(self, ledger: Ledger, log: Logger) -> None:
        self._ledger = ledger
        self._log = log
        self._held: dict[ClaimId, Claim] = {}
        self._begun: set[ClaimId] = set()
        self._lost: set[ClaimId] = set()
        self._change = threading.Condition()
        self._ends = False
        self._over = False
        self._thread = threading.Thread(target=self._renew_all, name="odf-leases", daemon=True)

    def __enter__(self) -> Leases:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held any more afterwards, whatever happened: what was not published runs again by itself."""
        with self._change:
            self._over = True
            self._change.notify()
            left = list(self._held.values())
            self._held.clear()
        word = type(error).__name__ if error else "no error"
        begun = [one for one in left if one.claim_id in self._begun]
        self._abandon(begun, f"the run ended in the middle of it ({word})")
        # One that kills Spark must not take those with it that only waited for their turn.
        waited = [one for one in left if one.claim_id not in self._begun]
        self._abandon(waited, f"the run ended before it began ({word})", begun=False)
        self._thread.join(timeout=10)

    def hold(self, claims: Iterable[Claim]) -> None:
        with self._change:
            self._held.update({one.claim_id: one for one in claims})
            self._change.notify()

    def begin(self, claim: Claim) -> bool:
        """Its work begins now; until then it has only waited. False: the run ends, and nothing begins any more."""
        with self._change:
            if not self._ends:
                self._begun.add(claim.claim_id)
            return not self._ends

    def end(self) -> None:
        """What happened to one chunk ends the whole run."""
        with self._change:
            self._ends = True

    def let_go(self, claim: Claim) -> None:
        """It was published, failed or lost: nobody renews it."""
        with self._change:
            self._held.pop(claim.claim_id, None)

    def is_lost(self, claim: Claim) -> bool:
        return claim.claim_id in self._lost

    def _abandon(self, claims: list[Claim], reason: str, *, begun: bool = True) -> None:
        try:
            if claims:
                abandon(self._ledger, claims, reason, begun=begun)
        except ClaimLost:
            pass  # somebody else has taken care of them
        except OpenDataFlowError as error:
            self._log.warning(f"{len(claims)} claims cannot be given back now, their leases will run out: {error}")

    def _renew_all(self) -> None:
        renewed = monotonic()
        while True:
            with self._change:
                while not self._over:
                    if not self._held:
                        self._change.wait()
                        renewed = monotonic()  # what comes now has just been claimed
                        continue
                    pause = min(one.lease.total_seconds() for one in self._held.values()) / 3
                    if (left := renewed + pause - monotonic()) <= 0:
                        break
                    self._change.wait(left)
                if self._over:
                    return
                held = list(self._held.values())
            renewed = monotonic()
            self._renew(held)

    def _renew(self, held: list[Claim]) -> None:
        try:
            renew(self._ledger, held)
        except ClaimLost as error:
            with self._change:
                for one in error.lost:
                    self._held.pop(one.claim_id, None)
                    self._lost.add(one.claim_id)
        except OpenDataFlowError as error:
            self._log.warning(f"the leases of {len(held)} claims could not be renewed, later again: {error}")
