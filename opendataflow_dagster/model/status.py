"""The states of a chunk and the arrows between them. docs/concepts/path-of-a-chunk.md draws this table.

Postgres holds the same table (`dataflow.status_transition`) and refuses every other arrow between known words,
whoever draws it. A word that is not known is not refused: a foreign client may use its own, and then the chunk
is locked for everybody until someone who knows the word changes it.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Locktype(StrEnum):
    IN = "IN"
    OUT = "OUT"


class Status(StrEnum):
    PENDING = "PENDING"  # announced, nobody has produced it
    RUNNING = "RUNNING"  # claimed
    READY = "READY"  # published
    FAILED = "FAILED"  # a person must look
    RESUBMIT = "RESUBMIT"  # runs (again) when its inputs are READY
    HOLD = "HOLD"  # refused to everyone until unhold
    SKIPPED = "SKIPPED"  # deliberately not produced


_P, _RUN, _OK, _F, _RE, _H, _S = Status

#: PENDING comes from an announcement alone. HOLD never lets anyone run: it gives back what it held and nothing else of
#: PENDING, READY and FAILED, which Postgres sees to.
TRANSITIONS: Final = MappingProxyType(
    {
        _P: frozenset({_RUN, _OK, _F, _RE, _H, _S}),
        _RUN: frozenset({_OK, _F, _RE, _H, _S}),
        _OK: frozenset({_RUN, _F, _RE, _H, _S}),
        _F: frozenset({_RUN, _OK, _RE, _H, _S}),
        _RE: frozenset({_RUN, _OK, _F, _H, _S}),
        _H: frozenset({_P, _OK, _F, _RE, _S}),
        _S: frozenset({_RE, _H}),
    }
)

#: An output with such a status, or without a row, may be claimed.
FREE: Final = frozenset({Status.PENDING, Status.RESUBMIT})
