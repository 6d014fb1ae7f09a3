"""Values and names of columns as Spark SQL reads them, whatever characters they hold."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

from ..model.checks import Scalar


def column(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> str:
    """Raw literals know no escapes, so no setting changes their meaning; literals side by side are one.

    They are cut at each quote, and within `${`, which Spark would replace by a setting of that name.
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
