"""Text for people."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice


def listing(items: Collection[object], shown: int = 3, separator: str = ", ") -> str:
    """The first items, and how many more there are: `a, b, c and 7 more`."""
    text = separator.join(str(item) for item in islice(items, shown))
    if len(items) <= shown:
        return text
    comma = "" if separator == ", " else separator.rstrip()
    return f"{text}{comma} and {len(items) - shown:,} more"


def counted(number: int, noun: str) -> str:
    """`1 row`, `1,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
