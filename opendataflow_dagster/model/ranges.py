"""Ranges of dataids, `A..B`, in natural order."""

from __future__ import annotations

from dataclasses import dataclass

from .ids import natural_key

_DOTS = ".."


@dataclass(frozen=True, kw_only=True, slots=True)
class DataIdRange:
    """Both ends are included; an empty one is open. `dataflow.natural_key` orders the same way in the ledger."""

    low: str
    high: str

    def __contains__(self, dataid: str) -> bool:
        key, _ = natural_key(dataid)
        return (not self.low or natural_key(self.low)[0] <= key) and (not self.high or key <= natural_key(self.high)[0])


def parse_range(word: str) -> DataIdRange | None:
    """None: the word is not a range."""
    low, dots, high = word.partition(_DOTS)
    return DataIdRange(low=low, high=high) if dots else None
