"""Every error of this system, in one tree.

    OpenDataFlowError
    |-- InvalidInput              invalid arguments; nothing was changed
    |   |-- InvalidName           an id that is not allowed
    |   |-- UnknownName           a Job, DataSet, chunk or status word that is not registered
    |   `-- InvalidDefinition     Jobs and DataSets that are inconsistent
    |-- NoGo                      an answer to the five questions is no; carries the verdict
    |-- ClaimLost                 a newer claim, a RESUBMIT or an expired lease took the chunk away
    |-- InvalidManifest           what should be published is missing, incomplete or invalid
    |-- IncompatibleSchema        the columns of a chunk differ from the declared ones, or from each other
    |-- StageFailed               a version could not be written; nothing was published
    |-- SparkUnavailable          retryable: Spark cannot be reached or has died; take a new session
    |-- ForbiddenTransition       the state machine does not allow this transition
    |-- LedgerUnavailable         retryable: the database cannot be reached; try again later
    |-- LedgerConflict            retryable: another transaction blocked this one; try again at once
    |   |-- StaleAnswers          a claim found a chunk changed; it retries by itself
    |   `-- BlockedBySession      a transaction does not end; names its session and how to end it
    |-- SchemaMismatch            the database's schema is not the one this version needs
    |-- EmbeddedPostgresError     the embedded server cannot be started or stopped
    |-- ScriptFailed              a script ended with an exit code other than 0, or was stopped
    `-- SecretUnreadable          no passphrase, the wrong one, or a secret that belongs to another DataSet

A message names the object, says what is wrong with it, and ends with the next step.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, ClassVar

from .text import listing

if TYPE_CHECKING:
    from .claim import Claim
    from .verdict import Verdict


class OpenDataFlowError(Exception):
    """Root of the tree."""

    #: The same call may succeed later, although nobody changes anything.
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
    """`verdict` has all five answers."""

    exit_code = 1

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


class ClaimLost(OpenDataFlowError):
    """These claims are no longer held; nothing was changed."""

    exit_code = 129

    def __init__(self, lost: list[Claim], verb: str) -> None:
        names = listing([f"{claim.jobid}/{claim.dataid} (claim {claim.claim_id})" for claim in lost], 5)
        chunk = [name for claim in lost[:1] for name in (claim.outputs[0], claim.dataid)]
        super().__init__(
            f"cannot {verb} {names}: the claim is no longer held (its lease expired, or the chunk was resubmitted, "
            f"cancelled, put on hold, or taken by another client). Discard the result; see what became of the chunk "
            f"with: {shlex.join(['odf', 'chunk', 'show', *chunk])}"
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
        super().__init__(f"chunk {listing(dataids, 5)} changed while it was being claimed; try again")
        self.dataids = dataids


class BlockedBySession(LedgerConflict):
    """Waiting longer is no use: a person or a program has left a transaction open."""


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
