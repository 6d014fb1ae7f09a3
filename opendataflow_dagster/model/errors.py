"""Every error of this system, in one tree.

    OpenDataFlowError
    |-- InvalidInput              the caller's words are wrong; nothing was changed
    |   |-- InvalidName           an id that cannot be used
    |   |-- UnknownName           a Job, DataSet, chunk or status word that is not registered
    |   `-- InvalidDefinition     Jobs and DataSets that contradict each other
    |-- NoGo                      the five questions say no; carries the verdict
    |-- ClaimLost                 a newer claim, a RESUBMIT or the clock took the chunk away
    |-- InvalidManifest           what was to be published is not there, not whole or not valid
    |-- IncompatibleSchema        the columns of a chunk are not those that were declared, or do not go together
    |-- StageFailed               a version could not be written; nothing of it is published
    |-- SparkUnavailable          retryable: Spark cannot be reached or has died; take a new session
    |-- ForbiddenTransition       the state machine has no such arrow
    |-- LedgerUnavailable         retryable: the database cannot be reached; try again later
    |-- LedgerConflict            retryable: another transaction was in the way; try again at once
    |   `-- StaleAnswers          a claim found a chunk changed; it retries by itself
    |-- SchemaMismatch            the database's schema is not the one this version needs
    |-- EmbeddedPostgresError     the embedded server cannot be started or stopped
    |-- ScriptFailed              a script ended with another exit code than 0, or was ended
    `-- SecretUnreadable          no passphrase, the wrong one, or a secret that belongs to another DataSet

A message names the thing, says what is wrong with it, and ends with the next step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from .claim import Claim
    from .verdict import Verdict


class OpenDataFlowError(Exception):
    """Root of the tree."""

    #: The same call may succeed later without anybody changing anything.
    retryable: ClassVar[bool] = False
    #: What `odf` exits with. 64 is a usage error; failures start at 128 (docs/reference/codes.md).
    exit_code: ClassVar[int] = 128


class InvalidInput(OpenDataFlowError):
    exit_code = 64


class InvalidName(InvalidInput):
    pass


class UnknownName(InvalidInput):
    pass


class InvalidDefinition(InvalidInput):
    pass


class NoGo(OpenDataFlowError):
    """The gate said no. `verdict` has all five answers."""

    exit_code = 1

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


class ClaimLost(OpenDataFlowError):
    """The claims named here are no longer held; nothing of them was changed."""

    exit_code = 129

    def __init__(self, lost: list[Claim], verb: str) -> None:
        names = ", ".join(f"{c.jobid}/{c.dataid} (claim {c.claim_id})" for c in lost[:5])
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        super().__init__(
            f"cannot {verb} {names}{more}: the claim is no longer held (its lease expired, or the chunk was "
            f"resubmitted or taken by someone else). Throw the result away; the chunk runs again by itself."
        )
        self.lost = lost


class InvalidManifest(OpenDataFlowError):
    exit_code = 130


class ForbiddenTransition(OpenDataFlowError):
    exit_code = 131


class LedgerUnavailable(OpenDataFlowError):
    retryable = True
    exit_code = 132


class LedgerConflict(OpenDataFlowError):
    retryable = True
    exit_code = 133


class StaleAnswers(LedgerConflict):
    """The answers about one of these chunks are out of date; the claim of all of them was rolled back."""

    def __init__(self, dataids: list[str]) -> None:
        super().__init__(f"chunk {', '.join(dataids[:5])} changed while it was being claimed; try again")
        self.dataids = dataids


class SchemaMismatch(OpenDataFlowError):
    exit_code = 134


class EmbeddedPostgresError(OpenDataFlowError):
    exit_code = 135


class StageFailed(OpenDataFlowError):
    exit_code = 136


class IncompatibleSchema(OpenDataFlowError):
    exit_code = 144


class SparkUnavailable(OpenDataFlowError):
    retryable = True
    exit_code = 138


class ScriptFailed(OpenDataFlowError):
    exit_code = 140


class SecretUnreadable(OpenDataFlowError):
    exit_code = 142
