"""The lease keeper: one thread renews the leases of all claims of a run, independent of the work itself."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from logging import Logger
from time import monotonic
from types import TracebackType

from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost, OpenDataFlowError
from ..model.ids import ClaimId
from ..protocol.release import abandon
from ..protocol.renew import renew_many

# After a renewal that failed, or left a row that another transaction held.
_AGAIN_SECONDS = 1.0


class LeaseKeeper:
    """Renews at a third of the shortest lease, so that two renewals may fail before a lease expires."""

    def __init__(self, ledger: Ledger, log: Logger) -> None:
        self._ledger = ledger
        # Whatever else waits for the ledger, it does not wait on this connection.
        self._own_ledger = ledger.with_one_connection()
        self._log = log
        self._held: dict[ClaimId, Claim] = {}
        #: When each lease expires, by this process's clock.
        self._expires: dict[ClaimId, float] = {}
        self._begun: set[ClaimId] = set()
        self._lost: set[ClaimId] = set()
        self._renew_at = 0.0
        self._change = threading.Condition()
        self._run_fails = False
        self._closed = False
        self._thread = threading.Thread(target=self._keep, name="odf-leases", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Abandon every claim that has no outcome, so that its chunk can run again at once."""
        with self._change:
            self._closed = True
            self._change.notify()
            held = list(self._held.values())
            self._held.clear()
        cause = str(error) if isinstance(error, OpenDataFlowError) else type(error).__name__ if error else "no error"
        begun = [claim for claim in held if claim.claim_id in self._begun]
        self._abandon(begun, f"the run ended while the chunk was in progress ({cause})")
        # A chunk that was never started has not used up an attempt.
        unbegun = [claim for claim in held if claim.claim_id not in self._begun]
        self._abandon(unbegun, f"the run ended before the chunk was started ({cause})", begun=False)
        # A renewal that is stuck must not hold up the run: it renews nothing that was released.
        self._thread.join(timeout=1)
        self._own_ledger.close()

    def hold(self, claims: Iterable[Claim]) -> None:
        """Keep the leases of new claims."""
        with self._change:
            now = monotonic()
            for claim in claims:
                seconds = claim.lease.total_seconds()
                self._renew_at = min(self._renew_at, now + seconds / 3) if self._held else now + seconds / 3
                self._held[claim.claim_id] = claim
                self._expires[claim.claim_id] = now + seconds
            self._change.notify()

    def begin(self, claim: Claim) -> bool:
        """The chunk is started. False: the run is failing, start nothing more."""
        with self._change:
            if not self._run_fails:
                self._begun.add(claim.claim_id)
            return not self._run_fails

    def fail_run(self) -> None:
        """An error of one chunk ends the whole run."""
        with self._change:
            self._run_fails = True

    def release(self, claim: Claim) -> None:
        """The claim has its outcome: published, failed or lost."""
        with self._change:
            self._held.pop(claim.claim_id, None)

    def is_lost(self, claim: Claim) -> bool:
        """Another client took the chunk, or the lease expired while the ledger could not be reached."""
        return claim.claim_id in self._lost or monotonic() >= self._expires.get(claim.claim_id, monotonic() + 1)

    def _abandon(self, claims: list[Claim], reason: str, *, begun: bool = True) -> None:
        try:
            if claims:
                abandon(self._ledger, claims, reason, begun=begun)
        except ClaimLost:
            pass  # already released by another client
        except OpenDataFlowError as error:
            self._log.warning(f"{len(claims)} claims could not be released, so their leases will expire: {error}")

    def _keep(self) -> None:
        while True:
            with self._change:
                while not self._closed:
                    wait = self._renew_at - monotonic() if self._held else None
                    if wait is not None and wait <= 0:
                        break
                    self._change.wait(wait)
                if self._closed:
                    return
                held = list(self._held.values())
            self._renew(held)

    def _renew(self, held: list[Claim]) -> None:
        began = monotonic()
        lost: Sequence[Claim] = ()
        renewed: Sequence[Claim] = ()
        try:
            renewal = renew_many(self._own_ledger, held)
            renewed, lost = renewal.renewed, renewal.lost
        except Exception as error:  # the thread must survive: without it every lease expires
            self._log.warning(f"the leases of {len(held)} claims could not be renewed; retrying: {error}")
        with self._change:
            self._expires |= {claim.claim_id: began + claim.lease.total_seconds() for claim in renewed}
            for claim in (*lost, *(claim for claim in held if monotonic() >= self._expires[claim.claim_id])):
                self._held.pop(claim.claim_id, None)
                self._lost.add(claim.claim_id)
            shortest = min(claim.lease.total_seconds() for claim in held)
            is_whole = len(renewed) + len(lost) == len(held)
            self._renew_at = began + shortest / 3 if is_whole else monotonic() + min(_AGAIN_SECONDS, shortest / 10)
