"""A DataSet as an asset of Dagster, and the job by which it is launched alone.

Dagster reads the annotations of the asset's function, so they are not postponed here.
"""

import warnings
from collections.abc import Sequence
from functools import cache

import dagster as dg
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from ..engine.dataset_graph import Catalogue, Entry
from ..model.errors import InvalidInput
from ..model.ids import data_id
from ..model.job import Input, Job
from .io_manager import Work
from .partitions import mapping_of, partitions_of
from .run_config import DATAIDS, operation_of

IO_MANAGER = "opendataflow"

# Each chunk gets an event of its own while the run goes on. Dagster would add one for each of them at the end, and one
# without a partition where the chunks come from the configuration. This mark on the output tells it not to.
_NO_EVENTS_BY_DAGSTER = {SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True}


def asset_of(entry: Entry, job: Job, catalogue: Catalogue) -> dg.AssetsDefinition:
    declared = entry.declaration
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)

        @dg.multi_asset(
            name=operation_of(entry),
            outs={
                "result": dg.AssetOut(
                    key=entry.asset_key,
                    io_manager_key=IO_MANAGER,
                    owners=_owners(declared.owner),
                    description=declared.description,
                    kinds={"spark", declared.kind},
                    metadata=_described(entry),
                )
            },
            deps=[_needed(entry, one, catalogue) for one in job.inputs],
            partitions_def=partitions_of(declared),
            backfill_policy=dg.BackfillPolicy.multi_run(entry.chunks_per_run),
            config_schema={DATAIDS: dg.Field([str], is_required=False, description="Make these chunks.")},
            group_name=declared.domain,
        )
        def made(context: dg.AssetExecutionContext) -> dg.Output[Work]:
            dataids, planned = _dataids(context, entry)
            work = Work(
                entry=entry,
                job=job,
                catalogue=catalogue,
                dataids=tuple(dict.fromkeys(data_id(one) for one in dataids)),
                planned=frozenset(planned),
            )
            return dg.Output(work, metadata=_NO_EVENTS_BY_DAGSTER)

    return made


def external_asset_of(entry: Entry) -> dg.AssetSpec:
    declared = entry.declaration
    spec = dg.AssetSpec(
        key=entry.asset_key,
        partitions_def=partitions_of(declared),
        group_name=declared.domain,
        owners=_owners(declared.owner),
        description=declared.description,
        kinds={"external"},
        metadata=_described(entry),
    )
    return spec.with_io_manager_key(IO_MANAGER)


def job_of(entry: Entry, job: Job) -> UnresolvedAssetJobDefinition:
    """It has the Job's name: `dagster job launch -j JOB`."""
    return _job(job.jobid, entry.asset_key)


@cache
def _job(name: str, asset_key: dg.AssetKey) -> UnresolvedAssetJobDefinition:
    """Once: the sensors that start it must name the very same."""
    return dg.define_asset_job(name, selection=dg.AssetSelection.assets(asset_key))


def _dataids(context: dg.AssetExecutionContext, entry: Entry) -> tuple[Sequence[str], Sequence[str]]:
    """The chunks of this run, and those of them that Dagster has planned."""
    tagged: Sequence[str] = ()
    if context.has_partition_key:
        tagged = [context.partition_key]
    elif context.has_partition_key_range:
        tagged = context.partition_keys
    if named := context.op_execution_context.op_config.get(DATAIDS):
        return named, tagged
    if not tagged:
        raise InvalidInput(
            f"which chunks of {entry.dataset.datasetid}? Launch it for a partition, or name them in the configuration "
            f"of the run ({DATAIDS}: [...])"
        )
    return tagged, tagged


def _needed(entry: Entry, source: Input, catalogue: Catalogue) -> dg.AssetDep:
    theirs = catalogue.entries[source.datasetid]
    mapping = mapping_of(source.mapping, entry.dataset.partitions, theirs.dataset.partitions)
    return dg.AssetDep(theirs.asset_key, partition_mapping=mapping)


def _owners(owner: str | None) -> list[str] | None:
    """Dagster knows e-mail addresses and teams."""
    if owner is None:
        return None
    return [owner if "@" in owner or owner.startswith("team:") else f"team:{owner}"]


def _described(entry: Entry) -> dict[str, object]:
    declared = entry.declaration
    described: dict[str, object] = {"job": declared.jobid}
    if entry.dataset.location is not None:
        described["root"] = dg.MetadataValue.path(entry.dataset.location)
    if declared.checks:
        described["checks"] = ", ".join(one.name for one in declared.checks)
    if declared.schema is not None:
        columns = [dg.TableColumn(one.name, one.dataType.simpleString()) for one in declared.schema.fields]
        described["dagster/column_schema"] = dg.TableSchema(columns)
    return described
