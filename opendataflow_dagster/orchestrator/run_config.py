"""The configuration of a run may name its chunks: any set of them, while Dagster's tags hold one or a range.

Tags of our own say how many they are and from where to where, because the list of runs shows them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import dagster as dg

from ..engine.dataset_graph import DatasetNode
from ..model.ids import natural_key

DATAIDS: Final = "dataids"
# The list of runs has little room, so they have no prefix.
CHUNKS_TAG: Final = "chunks"
RANGE_TAG: Final = "range"


def asset_key_of(node: DatasetNode) -> dg.AssetKey:
    return dg.AssetKey(node.dataset.datasetid)


def operation_of(node: DatasetNode) -> str:
    """Not the plain name: that is the job's, and Dagster needs them to differ."""
    return f"make_{node.dataset.datasetid}"


def run_config(node: DatasetNode, dataids: Sequence[str]) -> Mapping[str, object]:
    return {"ops": {operation_of(node): {"config": {DATAIDS: list(dataids)}}}}


def labels(dataids: Collection[str]) -> dict[str, str]:
    """`chunks: 29`, `range: 2024-01-02..2024-01-30`."""
    if not dataids:
        return {}
    first, last = min(dataids, key=natural_key), max(dataids, key=natural_key)
    return {CHUNKS_TAG: f"{len(dataids):,}", RANGE_TAG: first if first == last else f"{first}..{last}"}


def partition_tags(dataids: Sequence[str]) -> dict[str, str]:
    """Dagster looks up the inputs of one partition before a step, and fails without any. Several chunks are no
    partition of the run: in these tags, the list of runs does not show the first one as all."""
    if len(dataids) == 1:
        return {"dagster/partition": dataids[0]}
    return dict.fromkeys(("dagster/asset_partition_range_start", "dagster/asset_partition_range_end"), dataids[0])


def dataids_in(config: Mapping[str, object]) -> set[str]:
    """The chunks that a run's configuration names."""
    dataids: set[str] = set()
    operations = config.get("ops")
    for operation in operations.values() if isinstance(operations, Mapping) else ():
        settings = operation.get("config") if isinstance(operation, Mapping) else None
        dataids.update((settings or {}).get(DATAIDS, ()))
    return dataids
