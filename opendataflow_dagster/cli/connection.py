"""Opens the ledger that the environment names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.database import Ledger as Ledger


@contextmanager
def open_ledger(*, by: str | None = None, reason: str = "", rehearsal: bool = False) -> Iterator[Ledger]:
    """A rehearsal rolls back every transaction: verbs report what they would do, errors included."""
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.ledger.settings import database_url

    with Ledger(database_url(), actor=by, reason=reason, rehearsal=rehearsal) as ledger:
        yield ledger


def registered_names() -> tuple[list[str], list[str]]:
    """DataSets and Jobs for shell completion, which must never start a server, wait long or print an error."""
    from opendataflow_dagster.ledger import registry
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
    from opendataflow_dagster.ledger.settings import configured_url, home
    from opendataflow_dagster.model.errors import OpenDataFlowError

    try:
        url = configured_url()
        if url is None:
            server = EmbeddedPostgres(home())
            if not server.status().running:
                return [], []
            url = server.url()
        with Ledger(url, patience=timedelta(seconds=1)) as ledger, ledger.statement() as statement:
            known = registry.registered(statement)
    except OpenDataFlowError:
        return [], []
    return sorted(known.datasets), sorted({*known.inputs, *known.outputs})
