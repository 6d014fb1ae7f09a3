"""The configuration of a run may name its chunks: any set of them, where Dagster's tags know only one or a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..engine.dataset_graph import Entry

DATAIDS: Final = "dataids"


def operation_of(entry: Entry) -> str:
    """The job has the plain name, and Dagster wants another for the operation in it."""
    return f"make_{entry.dataset.datasetid}"


def run_config(entry: Entry, dataids: Sequence[str]) -> Mapping[str, object]:
    return {"ops": {operation_of(entry): {"config": {DATAIDS: list(dataids)}}}}


def dataids_in(config: Mapping[str, object]) -> set[str]:
    """The chunks that a run's configuration names."""
    found: set[str] = set()
    operations = config.get("ops")
    for operation in operations.values() if isinstance(operations, Mapping) else ():
        named = operation.get("config") if isinstance(operation, Mapping) else None
        found.update((named or {}).get(DATAIDS, ()))
    return found
