"""Run one program for one claimed chunk: start it, show and keep its output, and describe what it made.

Exit code 0 means that the chunk is to be published; any other exit code fails it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..engine.producer import ChunkFailed, HeldClaim
from ..model.claim import Claim
from ..model.errors import ClaimLost, ScriptFailed
from ..model.ids import DatasetId
from ..model.manifest import ELSEWHERE, NewManifest
from ..model.paths import path_part
from .environment import Provision
from .output import Screen, ScriptOutput
from .process import Ended, Stop, run_process


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    #: Seconds between the signal that asks the program to end and SIGKILL.
    grace: float = 10.0
    #: None: no limit; the lease is renewed as long as the program runs.
    timeout: float | None = None


@dataclass(kw_only=True)
class Program:
    """One execution of a program. Its exit code and log are known afterwards, also if it failed."""

    command: Sequence[str]
    logs: Path
    stop: Stop
    limits: Limits
    screen: Screen | None = None
    #: Negative: the signal that killed it.
    exit_code: int = 0
    #: None: it printed nothing.
    log: Path | None = None
    #: Why it failed, without the path of the log.
    reason: str | None = None

    def run(self, held: HeldClaim, provision: Provision) -> Mapping[DatasetId, NewManifest]:
        """ClaimLost: the program was ended because its claim was lost. ScriptFailed: it could not be started."""
        claim = held.claim
        ended, output = self._execute(held, provision)
        self.exit_code, self.log = ended.code, output.kept
        if held.is_lost():
            raise ClaimLost([claim], "publish")
        self.reason = _why_failed(ended, output)
        if self.reason is None:
            manifests, self.reason = _manifests(claim, provision.places(claim))
        if self.reason is not None:
            raise ChunkFailed(f"{self.reason} (log: {self.log})" if self.log else self.reason)
        return manifests

    def _execute(self, held: HeldClaim, provision: Provision) -> tuple[Ended, ScriptOutput]:
        timeout, began = self.limits.timeout, time.monotonic()

        def tick() -> str | None:
            if timeout is not None and time.monotonic() >= began + timeout:
                return f"timed out after {timeout:g} s"
            return "the claim was lost" if held.is_lost() else None

        path = log_path(self.logs, held.claim)
        output = ScriptOutput(self.logs, path, self.screen, provision.secrets, lambda: tick() or self.stop.signal)
        try:
            ended = run_process(
                self.command,
                environment=provision.environment(held.claim),
                sink=output.take,
                tick=tick,
                stop=self.stop,
                grace=self.limits.grace,
                tick_seconds=min(1.0, held.claim.lease.total_seconds() / 5),
            )
        except OSError as error:
            raise ScriptFailed(
                f"{self.command[0]} cannot be started ({error.strerror}); correct the path or its #! line"
            ) from None
        finally:
            output.close()
        return ended, output


def log_path(logs: Path, claim: Claim) -> Path:
    """One file per attempt. It is always below `logs`, whatever characters the dataid has."""
    return logs / path_part(claim.jobid) / path_part(claim.dataid) / f"{claim.attempt}-{claim.claim_id}.log"


def _why_failed(ended: Ended, output: ScriptOutput) -> str | None:
    """The cause comes first, because failures are grouped by it."""
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


def _manifests(claim: Claim, places: Mapping[DatasetId, str]) -> tuple[Mapping[DatasetId, NewManifest], str | None]:
    """What the program wrote, and what is missing. `places` are the folders of the outputs that have a root."""
    manifests = {datasetid: NewManifest(location=ELSEWHERE) for datasetid in claim.outputs}
    if places:
        from ..warehouse.placement import files_below  # slow to import, and most scripts do not need it

        for datasetid, place in places.items():
            if (files := files_below(place)) is None:
                return {}, (
                    f"the script succeeded but wrote nothing for {datasetid} to {place}; write to the folder in "
                    f"${{..._location}}, or declare {datasetid} without a location"
                )
            manifests[datasetid] = NewManifest(location=place, files=files)
    return manifests, None
