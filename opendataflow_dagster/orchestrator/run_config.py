"""The configuration of a run may name its chunks: any set of them, while Dagster's tags hold one or a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import dagster as dg

from ..engine.dataset_graph import DatasetNode

DATAIDS: Final = "dataids"


def asset_key_of(node: DatasetNode) -> dg.AssetKey:
    return dg.AssetKey(node.dataset.datasetid)


def operation_of(node: DatasetNode) -> str:
    """Not the plain name: that is the job's, and Dagster needs them to differ."""
    return f"make_{node.dataset.datasetid}"


def run_config(node: DatasetNode, dataids: Sequence[str]) -> Mapping[str, object]:
    return {"ops": {operation_of(node): {"config": {DATAIDS: list(dataids)}}}}


def dataids_in(config: Mapping[str, object]) -> set[str]:
    """The chunks that a run's configuration names."""
    dataids: set[str] = set()
    operations = config.get("ops")
    for operation in operations.values() if isinstance(operations, Mapping) else ():
        settings = operation.get("config") if isinstance(operation, Mapping) else None
        dataids.update((settings or {}).get(DATAIDS, ()))
    return dataids
