"""From declarations to Dagster: the ledger is made equal to the code, then every DataSet becomes an asset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

import dagster as dg

from ..engine.dataset_graph import Catalogue, catalogue
from ..engine.declaration import Declaration
from ..ledger.database import Ledger
from ..ledger.settings import home
from ..model.errors import OpenDataFlowError
from ..protocol.register import register
from ..protocol.throttle import throttle_first
from .assets import IO_MANAGER, asset_of, external_asset_of, job_of
from .files_sensor import files_sensor
from .heal_sensor import heal_sensor
from .io_manager import DatasetIOManager
from .planning_sensor import planning_sensor
from .readiness_sensor import readiness_sensor
from .resources import LedgerResource, SparkResource
from .run_status_sensors import run_endings

WAREHOUSE_VARIABLE = "ODF_WAREHOUSE"

#: Who only wants to know what a code location declares (describe.py) puts a list here: then nothing is registered.
only_describe: list[Catalogue] | None = None


def build_definitions(
    declarations: Iterable[Declaration],
    *,
    ledger: LedgerResource | None = None,
    spark: SparkResource | None = None,
    warehouse: str | None = None,
    chunks_at_once: int = 0,
    sensors: Callable[[Catalogue], Sequence[dg.SensorDefinition]] | None = None,
    resources: Mapping[str, object] | None = None,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec] = (),
) -> dg.Definitions:
    """Everything that Dagster needs to know of these DataSets.

    `warehouse`: the folder or URL below which DataSets have their roots. `sensors` makes them from the catalogue of all
    DataSets; without it the framework's own. `assets` and `resources` of plain Dagster may stand beside.
    """
    found = catalogue(declarations, warehouse or warehouse_root())
    ledger, spark = ledger or LedgerResource(), spark or SparkResource()
    if only_describe is None:
        register_all(ledger.ledger, found)
    else:
        only_describe.append(found)
    return dg.Definitions(
        assets=[
            *(external_asset_of(one) for one in found.entries.values() if one.job is None),
            *(asset_of(one, job, found) for one, job in found.made),
            *assets,
        ],
        jobs=[job_of(one, job) for one, job in found.made],
        sensors=list((sensors or all_sensors)(found)),
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


def register_all(ledger: Ledger, found: Catalogue) -> None:
    """Code is the master. A code location that cannot reach its ledger does not load, and says why."""
    try:
        register(ledger, [one.dataset for one in found.entries.values()], [job for _, job in found.made])
        for one, job in found.made:
            if one.declaration.concurrency is not None:
                throttle_first(ledger, job.jobid, one.declaration.concurrency)
    except OpenDataFlowError as error:
        error.add_note("The DataSets of this code location were not registered in the ledger, so it is not loaded.")
        raise


def all_sensors(found: Catalogue) -> list[dg.SensorDefinition]:
    return [
        readiness_sensor(found),
        planning_sensor(found),
        heal_sensor(found),
        files_sensor(found),
        *run_endings(),
    ]
