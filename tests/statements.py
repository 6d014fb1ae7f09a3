"""Counts the statements that a verb sends: a structural figure where a time would depend on the machine."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from opendataflow_dagster.ledger.database import Transaction


def count_statements(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each named statement of any ledger in this process runs from now on."""
    statements = Counter[str]()
    execute = Transaction._execute

    def count(self: Transaction, cursor: Any, name: str, parameters: dict[str, object]) -> Any:
        statements[name] += 1
        return execute(self, cursor, name, parameters)

    monkeypatch.setattr(Transaction, "_execute", count)
    return statements
