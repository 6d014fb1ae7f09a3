"""What `odf run` is to do, and what it reports: the order, the result of each script, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from ..model.claim import Claim
from ..model.errors import ClaimLost, ScriptFailed
from ..model.ids import JobId
from .environment import Provision
from .output import Screen
from .process import Stop
from .program import Limits

NOT_READY: Final = 1
NEVER_READY: Final = 2
NOT_SCHEDULED: Final = 3
#: Plus the number of the signal. Not 128, as in a shell: 129 to 131 are errors of ours.
SIGNALLED: Final = 160


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptResult:
    """How a script ended, and what became of its chunk."""

    claim: Claim
    result: Literal["finished", "failed", "lost"]
    #: The script's own; negative: the signal that killed it.
    exit_code: int
    reason: str | None
    #: None: it printed nothing.
    log: Path | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to run, and how."""

    jobid: JobId
    command: Sequence[str]
    logs: Path
    by: str
    #: Makes the screen for the script of a claim.
    screen: Callable[[Claim], Screen] | None = None
    limits: Limits = field(default_factory=Limits)
    stop: Stop = field(default_factory=Stop)
    #: Called with each result, in the calling thread.
    tell: Callable[[ScriptResult], None] = lambda _: None
    #: Called in a dry run instead of the script: the chunk that it would run for, and what it would be given.
    rehearse: Callable[[Claim, Provision], None] = lambda _, __: None


@dataclass(frozen=True, kw_only=True, slots=True)
class Nothing:
    """Why there was nothing to run, and the exit code that tells a scheduler."""

    exit_code: int
    sentence: str


@dataclass(kw_only=True)
class Report:
    finished: int = 0
    failed: int = 0
    lost: int = 0
    nothing: Nothing | None = None
    signal: int | None = None
    #: A chunk was claimed.
    begun: bool = False

    def count(self, script: ScriptResult) -> None:
        match script.result:
            case "finished":
                self.finished += 1
            case "failed":
                self.failed += 1
            case "lost":
                self.lost += 1

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return SIGNALLED + self.signal
        if self.failed:
            return ScriptFailed.exit_code
        if self.lost:
            return ClaimLost.exit_code
        return self.nothing.exit_code if self.nothing is not None and not self.finished else 0
