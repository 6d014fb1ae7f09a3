"""The columns that SQL text shows before Spark runs it: those a query returns, and those an expression reads.

What is not certain is left to Spark, which refuses it when the first chunk is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

# Spark also calls these functions without parentheses.
_CONSTANTS: Final = {"current_catalog", "current_database", "current_schema", "current_time", "localtimestamp", "user"}


def columns_of_query(text: str, tables: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """Its columns; None: not all are certain. `tables`: the columns of those input tables where they are known."""
    try:
        query = sqlglot.parse_one(text, dialect="spark")
        if not isinstance(query, exp.Query):
            return None
        if query.is_star and not query.find(exp.Lateral, exp.Pivot, exp.Unnest):
            schema: dict[str, object] = {table: dict.fromkeys(columns, "string") for table, columns in tables.items()}
            query = qualify(query, schema=schema, dialect="spark", validate_qualify_columns=False)
        certain = all(isinstance(column, exp.Alias | exp.Aliases | exp.Column) for column in query.selects)
        return tuple(query.named_selects) if certain and not query.is_star else None
    except sqlglot.errors.SqlglotError:
        return None


def columns_in(expression: str) -> tuple[str, ...]:
    """The columns, or the structs, that an expression reads; none where it cannot be parsed here."""
    try:
        parsed = sqlglot.parse_one(expression, dialect="spark")
    except sqlglot.errors.SqlglotError:
        return ()
    names = dict.fromkeys(column.parts[0].name for column in parsed.find_all(exp.Column))
    return tuple(name for name in names if name.lower() not in _CONSTANTS)
