"""Run one script for one claim: start it, show and keep its output, renew the lease, and record how it ended.

Exit code 0 publishes the chunk, anything else fails it: the script's exit code is the law.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from ..ledger.database import Ledger
from ..model.claim import Claim
from ..model.errors import ClaimLost, InvalidManifest, LedgerConflict, LedgerUnavailable, ScriptFailed
from ..model.ids import DatasetId
from ..model.manifest import ELSEWHERE, NewManifest
from ..model.paths import path_part
from ..protocol.publish import publish
from ..protocol.release import abandon, fail
from ..protocol.renew import renew
from .output import Screen, ScriptOutput
from .process import Ended, Stop, run_process

_T = TypeVar("_T")

# A lost connection is tried again so soon, as long as the lease runs.
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    #: Between a signal that asks the script to end and the one that ends it.
    grace: float = 10.0
    #: None: as long as it takes; the lease is renewed.
    timeout: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    claim: Claim
    result: Literal["finished", "failed", "lost"]
    #: The script's own; negative: the signal that killed it.
    exit_code: int
    reason: str | None
    #: None: it printed nothing.
    log: Path | None
    seconds: float


def log_path(logs: Path, claim: Claim) -> Path:
    """A file for each attempt; whatever a dataid holds, it stays below `logs`."""
    return logs / path_part(claim.jobid) / path_part(claim.dataid) / f"{claim.attempt}-{claim.claim_id}.log"


def run_script(
    ledger: Ledger,
    claim: Claim,
    command: Sequence[str],
    *,
    environment: Mapping[bytes, bytes],
    log_path: Path,
    places: Mapping[DatasetId, str] | None = None,
    secrets: Sequence[str] = (),
    screen: Screen | None = None,
    stop: Stop | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Outcome:
    """`places` are the folders in which a script must have left its outputs. ScriptFailed: it could not be started,
    and the chunk was given back."""
    begun = time.monotonic()
    lease = _Lease(ledger, claim, limits.timeout)
    signals = stop or Stop()
    output = ScriptOutput(log_path, screen, secrets, lambda: lease.tick() or signals.signal)
    try:
        ended = run_process(
            command,
            environment=environment,
            sink=output.take,
            tick=lease.tick,
            stop=signals,
            grace=limits.grace,
            tick_seconds=lease.tick_seconds,
        )
    except OSError as error:
        sentence = f"{command[0]} cannot be started ({error.strerror}); correct it, or its first line"
        with suppress(ClaimLost):
            lease.insist(lambda: abandon(ledger, [claim], sentence))
        raise ScriptFailed(sentence) from None
    finally:
        output.close()
    reason = None if lease.lost else _why_failed(ended, output)
    try:
        if lease.lost:
            raise ClaimLost([claim], "publish")
        if reason is None:
            reason = lease.insist(lambda: _publish(ledger, claim, places or {}))
        if reason is not None:
            said = f"{reason} (log: {output.kept})" if output.kept else reason
            lease.insist(lambda: fail(ledger, claim, said))
    except ClaimLost as error:
        reason = str(error)
        lease.lost = True
    return Outcome(
        claim=claim,
        result="lost" if lease.lost else "finished" if reason is None else "failed",
        exit_code=ended.code,
        reason=reason,
        log=output.kept,
        seconds=time.monotonic() - begun,
    )


def _why_failed(ended: Ended, output: ScriptOutput) -> str | None:
    """The cause comes first: many failures are grouped by it."""
    if ended.ended_for is not None:
        how = ended.ended_for
    elif ended.code > 0:
        how = f"exit code {ended.code}"
    elif ended.code < 0:
        how = f"killed by {_signal_name(-ended.code)}"
    else:
        return None
    return f"{how}: {last}" if (last := output.last_line()) else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _publish(ledger: Ledger, claim: Claim, places: Mapping[DatasetId, str]) -> str | None:
    """What is wrong with what the script left behind; None: it is published."""
    from ..warehouse.listing import files_below  # only scripts that write into the warehouse pay for it

    manifests: dict[DatasetId, NewManifest] = {}
    try:
        for datasetid in claim.outputs:
            if (place := places.get(datasetid)) is None:
                manifests[datasetid] = NewManifest(location=ELSEWHERE)
            elif (files := files_below(place)) is None:
                return (
                    f"the script ended well but left nothing for {datasetid} in {place}; let it write there "
                    f"(the variable ..._location), or declare {datasetid} without a location"
                )
            else:
                manifests[datasetid] = NewManifest(location=place, files=files)
        publish(ledger, claim, manifests)
    except InvalidManifest as error:
        return str(error)
    return None


class _Lease:
    """Renewed in good time; lost when someone took it, or when the ledger could not be reached until it ran out."""

    def __init__(self, ledger: Ledger, claim: Claim, timeout: float | None) -> None:
        self._ledger, self._claim = ledger, claim
        self._seconds = claim.lease.total_seconds()
        self.tick_seconds = min(1.0, self._seconds / 5)
        self.lost = False
        now = time.monotonic()
        self._until = now + self._seconds
        self._renew_at = now + self._seconds / 3
        self._timeout, self._ends_at = timeout, now + timeout if timeout is not None else None

    def tick(self) -> str | None:
        now = time.monotonic()
        if self._ends_at is not None and now >= self._ends_at:
            return f"it did not end within {self._timeout:g} s"
        if not self.lost and now >= self._renew_at:
            self._renew(now)
        return "the claim was lost" if self.lost else None

    def _renew(self, now: float) -> None:
        try:
            renew(self._ledger, [self._claim])
            self._until, self._renew_at = now + self._seconds, now + self._seconds / 3
        except ClaimLost:
            self.lost = True
        except (LedgerUnavailable, LedgerConflict):
            self.lost = time.monotonic() >= self._until
            self._renew_at = time.monotonic() + min(5.0, self._seconds / 10)

    def insist(self, call: Callable[[], _T]) -> _T:
        """A ledger that is away for a moment costs nobody the work of an hour; saying it twice does no harm."""
        while True:
            try:
                return call()
            except (LedgerUnavailable, LedgerConflict):
                if time.monotonic() >= self._until:
                    raise
                time.sleep(min(_PAUSE_SECONDS, self._seconds / 10))
