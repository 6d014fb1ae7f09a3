"""From declarations to Dagster: register the DataSets, then define assets, jobs, sensors and resources."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

import dagster as dg

from ..engine.connections import home
from ..engine.dataset_graph import DatasetGraph, build_graph, register_graph
from ..engine.declaration import Declaration
from .assets import IO_MANAGER, asset_of, external_asset_of, job_of
from .io_manager import DatasetIOManager
from .operator_jobs import operator_jobs
from .resources import LedgerResource, SparkResource
from .sensors import all_sensors

WAREHOUSE_VARIABLE = "ODF_WAREHOUSE"

#: Set by declared_registry.py to collect the graphs of a code location instead of registering them.
collected_graphs: list[DatasetGraph] | None = None


def build_definitions(
    declarations: Iterable[Declaration],
    *,
    ledger: LedgerResource | None = None,
    spark: SparkResource | None = None,
    warehouse: str | None = None,
    chunks_at_once: int = 0,
    sensors: Callable[[DatasetGraph], Sequence[dg.SensorDefinition]] | None = None,
    resources: Mapping[str, object] | None = None,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec] = (),
) -> dg.Definitions:
    """Everything that Dagster needs to know about these DataSets.

    `warehouse` is the folder or URL below which DataSets have their roots. `sensors` makes the sensors from the graph
    of all DataSets; without it there are the framework's own. `assets` and `resources` are plain Dagster ones.
    """
    graph = build_graph(declarations, warehouse or warehouse_root())
    ledger, spark = ledger or LedgerResource(), spark or SparkResource()
    if collected_graphs is None:
        register_graph(ledger.ledger, graph)
    else:
        collected_graphs.append(graph)
    return dg.Definitions(
        assets=[
            *(external_asset_of(node) for node in graph.nodes.values() if node.job is None),
            *(asset_of(node, job, graph) for node, job in graph.produced),
            *assets,
        ],
        jobs=[*(job_of(node, job) for node, job in graph.produced), *operator_jobs(ledger)],
        sensors=list((sensors or all_sensors)(graph)),
        resources={
            **(resources or {}),
            "ledger": ledger,
            "spark": spark,
            IO_MANAGER: DatasetIOManager(ledger=ledger, spark=spark, chunks_at_once=chunks_at_once),
        },
        executor=dg.in_process_executor,
    )


def warehouse_root() -> str:
    """ODF_WAREHOUSE, or a folder of the project."""
    return os.environ.get(WAREHOUSE_VARIABLE, "").strip() or str(home() / "warehouse")
