"""What differs between two versions of a chunk: columns, rows, checks, inputs and code.

Values are text, cut to a readable length: a difference is for people, and for programs that pass it on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from .ids import ChunkKey, ClaimId
from .manifest import CheckResult

Texts: TypeAlias = Mapping[str, str]

#: How many values of a row an example has.
MOST_VALUES: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffRequest:
    chunk: ChunkKey
    #: None: the version before `new`.
    old: int | None = None
    #: None: the current version.
    new: int | None = None
    #: Instead of `new`: what the newest attempt without a version left behind.
    staged: bool = False
    #: The columns that identify a row; empty: those of a `unique` check of the versions.
    key: Sequence[str] = ()
    #: How many examples of each kind.
    examples: int = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of the two: a version, or what a failed attempt staged."""

    #: None: it was staged and not published.
    version: int | None
    #: None: of a version, its manifest says who made it.
    claim_id: ClaimId | None
    location: str
    published: datetime | None
    rows: int | None
    bytes: int
    code_version: str | None
    content_digest: str | None = None
    checks: tuple[CheckResult, ...] = ()
    #: Why it failed, if it did.
    reason: str | None = None

    def __str__(self) -> str:
        return f"version {self.version}" if self.version is not None else f"claim {self.claim_id}, staged"


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnChange:
    column: str
    change: Literal["added", "removed", "type", "moved"]
    #: Types, or places from 1.
    old: str | None
    new: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class InputChange:
    """An input chunk that the two were made from in different versions. None: one of them was made without it."""

    chunk: ChunkKey
    old: str | None
    new: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairing:
    """How rows are compared."""

    #: The columns by which rows are paired; empty: whole rows are compared, as multisets.
    key: tuple[str, ...]
    #: Every compared column, and whether it is compared as a double because its type changed.
    columns: Mapping[str, bool]
    #: Why there is no key although one is declared.
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowExample:
    change: Literal["added", "removed", "changed"]
    #: Empty without a key.
    key: Texts
    #: The changed values, or the other values of the added or removed row; at most `MOST_VALUES`.
    old: Texts | None
    new: Texts | None
    #: How many equal rows, without a key.
    times: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class RowDiff:
    #: As in `Pairing`; empty, too, if a key occurs twice.
    key: tuple[str, ...]
    old_rows: int
    new_rows: int
    added: int
    removed: int
    #: Pairs with another value, by key.
    changed: int = 0
    #: How many values changed in each column.
    changed_values: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[RowExample, ...] = ()
    #: Why the rows were not paired by the key.
    note: str = ""

    @property
    def equal(self) -> bool:
        return not (self.added or self.removed or self.changed)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RowDiff:
        examples = tuple(RowExample(**example) for example in stored["examples"])
        return cls(**{**stored, "key": tuple(stored["key"]), "examples": examples})


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionDiff:
    chunk: ChunkKey
    old: Side
    new: Side
    columns: tuple[ColumnChange, ...]
    #: None: the rows were not compared; `rows_note` says why.
    rows: RowDiff | None
    rows_note: str
    inputs: tuple[InputChange, ...]

    @property
    def equal(self) -> bool:
        """The same columns and rows. What is not known to be equal is not."""
        if self.rows is None:
            digest = self.old.content_digest
            return self.old.location == self.new.location or (digest is not None and digest == self.new.content_digest)
        return not self.columns and self.rows.equal
