"""Unit tests need no Postgres: a test that asks for one belongs in tests/ledger."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def server() -> str:
    pytest.fail("a unit test needs no Postgres server; move this test to tests/ledger")
