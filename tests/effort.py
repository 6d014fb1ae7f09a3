"""How much of a large test runs: all of it in `make test`, a sample in `make test-fast`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

FAST: Final = os.environ.get("ODF_TEST_FAST") == "1"

T = TypeVar("T")


def scaled(full: int, *, fast: int) -> int:
    return fast if FAST else full


def sampled(items: Sequence[T], *, fast: int) -> Sequence[T]:
    """All items, or `fast` of them, evenly spread: the same ones in each run, first and last included."""
    if not FAST or len(items) <= fast:
        return items
    return [items[place * (len(items) - 1) // (fast - 1)] for place in range(fast)]
