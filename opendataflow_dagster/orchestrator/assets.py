"""A DataSet as a Dagster asset, and the job that launches it alone.

Dagster reads the annotations of the asset's function, so this module does not postpone them.
"""

import warnings
from collections.abc import Iterator, Sequence
from functools import cache

import dagster as dg

from ..engine.dataset_graph import DatasetGraph, DatasetNode
from ..model.check import Check
from ..model.errors import InvalidInput
from ..model.ids import data_id
from ..model.job import Input, Job
from .dagster_internals import NO_EVENTS_BY_DAGSTER, BackfillPolicy, ChunkCheckSpec, UnresolvedAssetJobDefinition
from .freshness import freshness_policy_of
from .io_manager import ChunkRequest
from .partitions import mapping_of, partitions_of
from .run_config import DATAIDS, asset_key_of, operation_of

IO_MANAGER = "opendataflow"


def asset_of(node: DatasetNode, job: Job, graph: DatasetGraph) -> dg.AssetsDefinition:
    declared = node.declaration
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        partitions = partitions_of(declared)
        checks = [_check_of(node, check, partitions) for check in declared.checks]

        @dg.multi_asset(
            name=operation_of(node),
            outs={
                "result": dg.AssetOut(
                    key=asset_key_of(node),
                    io_manager_key=IO_MANAGER,
                    owners=_owners(declared.owner),
                    description=declared.description,
                    kinds=set(declared.source.kinds),
                    metadata=_metadata(node),
                    code_version=node.dataset.code_version,
                    freshness_policy=freshness_policy_of(node.dataset),
                )
            },
            deps=[_dependency(node, source, graph) for source in job.inputs],
            check_specs=checks,
            partitions_def=partitions,
            backfill_policy=BackfillPolicy(node.chunks_per_run),
            config_schema={DATAIDS: dg.Field([str], is_required=False, description="Make these chunks.")},
            group_name=declared.domain,
        )
        def asset(context: dg.AssetExecutionContext) -> Iterator[dg.Output[ChunkRequest | None]]:
            dataids, planned = _dataids(context, node)
            requested = ChunkRequest(
                node=node,
                job=job,
                graph=graph,
                dataids=tuple(dict.fromkeys(data_id(dataid) for dataid in dataids)),
                planned=frozenset(planned),
            )
            # The IO manager makes the chunks, and writes the result of each check for each chunk.
            yield dg.Output(requested, "result", metadata=NO_EVENTS_BY_DAGSTER)
            for check in checks:
                yield dg.Output(None, check.get_python_identifier())

    return asset


def _check_of(node: DatasetNode, check: Check, partitions: dg.PartitionsDefinition[str]) -> ChunkCheckSpec:
    consequence = "is not published" if check.severity == "error" else "is published with a warning"
    return ChunkCheckSpec(
        name=check.name,
        asset=asset_key_of(node),
        partitions_def=partitions,
        description=f"Measured while a chunk is written. A version that fails {consequence}.",
        metadata={"severity": check.severity},
    )


def external_asset_of(node: DatasetNode) -> dg.AssetSpec:
    declared = node.declaration
    spec = dg.AssetSpec(
        key=asset_key_of(node),
        partitions_def=partitions_of(declared),
        group_name=declared.domain,
        owners=_owners(declared.owner),
        description=declared.description,
        kinds=set(declared.source.kinds),
        metadata=_metadata(node),
        freshness_policy=freshness_policy_of(node.dataset),
    )
    return spec.with_io_manager_key(IO_MANAGER)


def job_of(node: DatasetNode, job: Job) -> UnresolvedAssetJobDefinition:
    """It has the Job's name: `dagster job launch -j JOB`."""
    return _job(job.jobid, asset_key_of(node))


@cache
def _job(name: str, asset_key: dg.AssetKey) -> UnresolvedAssetJobDefinition:
    """Cached, because sensors must refer to the same object."""
    return dg.define_asset_job(name, selection=dg.AssetSelection.assets(asset_key))


def _dataids(context: dg.AssetExecutionContext, node: DatasetNode) -> tuple[Sequence[str], Sequence[str]]:
    """The chunks of this run, and those that Dagster has planned."""
    tagged: Sequence[str] = ()
    if context.has_partition_key:
        tagged = [context.partition_key]
    elif context.has_partition_key_range:
        tagged = context.partition_keys
    if named := context.op_execution_context.op_config.get(DATAIDS):
        return named, tagged
    if not tagged:
        raise InvalidInput(
            f"{node.dataset.datasetid}: the run names no chunks; launch it for a partition, or set {DATAIDS}: [...] in "
            f"the run configuration"
        )
    return tagged, tagged


def _dependency(node: DatasetNode, source: Input, graph: DatasetGraph) -> dg.AssetDep:
    upstream = graph.nodes[source.datasetid]
    mapping = mapping_of(source.mapping, node.dataset.partitions, upstream.dataset.partitions)
    return dg.AssetDep(asset_key_of(upstream), partition_mapping=mapping)


def _owners(owner: str | None) -> list[str] | None:
    """Dagster accepts e-mail addresses and teams."""
    if owner is None:
        return None
    return [owner if "@" in owner or owner.startswith("team:") else f"team:{owner}"]


def _metadata(node: DatasetNode) -> dict[str, object]:
    declared = node.declaration
    metadata: dict[str, object] = {"job": declared.jobid}
    if node.dataset.location is not None:
        metadata["root"] = dg.MetadataValue.path(node.dataset.location)
    if declared.schema is not None:
        columns = [dg.TableColumn(column.name, column.dataType.simpleString()) for column in declared.schema.fields]
        metadata["dagster/column_schema"] = dg.TableSchema(columns)
    return metadata
