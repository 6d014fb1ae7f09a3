"""Column names and values as Spark SQL literals, whatever characters they contain."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

#: A value that a column can be compared with.
Scalar: TypeAlias = str | int | float | bool | Decimal | date | datetime


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> str:
    """Raw literals have no escapes, so no Spark setting changes their meaning. Adjacent literals are concatenated.

    The text is split at each quote, and inside `${`, because Spark substitutes `${name}` with a setting.
    """
    pieces = re.split(r"(')|(?<=\$)(?=\{)", value)
    return " ".join(f'r"{piece}"' if piece == "'" else f"r'{piece}'" for piece in pieces if piece) or "''"


def literal(value: Scalar) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return text(value)
        case float():
            return f"{value!r}D"
        case Decimal():
            return f"{value:f}BD"
        case datetime():
            return f"timestamp'{value.isoformat()}'"
        case date():
            return f"date'{value.isoformat()}'"
        case int():
            return f"{value}L" if -(2**63) < value < 2**63 else f"{value}BD"
