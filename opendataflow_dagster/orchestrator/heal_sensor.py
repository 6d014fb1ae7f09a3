"""The heal sensor: restores the ledger's invariants, and lets Dagster know what the ledger knows.

Each tick goes on where the last one stopped, so that it is cheap however many chunks there are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

import dagster as dg

from ..engine.dataset_graph import Catalogue
from ..ledger import reports
from ..ledger.database import Ledger
from ..model.manifest import Manifest
from ..protocol.heal import heal
from . import metadata
from .events import Materialized, Origin, orchestrator_name, write_materializations
from .resources import LedgerResource
from .run_status_sensors import end_badly
from .silent_runs import SilentRuns

_REPORTED_AT_ONCE = 5000
_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the last tick stopped."""

    #: Versions up to here are known to Dagster, and so are chunks without one.
    reported: int = 0
    foreign: tuple[str, str, str] = reports.NO_FOREIGN


def heal_sensor(
    found: Catalogue, *, interval_seconds: int = 15, grace: timedelta = timedelta(seconds=30)
) -> dg.SensorDefinition:
    """`grace`: a run tells of what it made within a second or two; what is older and unknown, nobody else will tell."""

    silent = SilentRuns(found)

    @dg.sensor(
        name="heal",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Expired leases, retries, dead runs; chunks that Dagster does not know.",
    )
    def heal_all(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
        store = ledger.ledger
        known = json.loads(context.cursor or "{}")
        place = Place(**{name: known[name] for name in ("reported", "foreign") if name in known})
        healed = heal(store)
        ended = silent.end(context, store)
        dead = _release_dead_runs(context.instance, store, found)
        place, told = _tell_dagster(context.instance, store, found, place, grace)
        done = f"{healed}; silent runs: {ended} ended; dead runs: {dead} chunks; told to Dagster: {told}"
        return dg.SensorResult(skip_reason=done, cursor=json.dumps(asdict(place)))

    return heal_all


def _release_dead_runs(instance: dg.DagsterInstance, ledger: Ledger, found: Catalogue) -> int:
    """Runs that Dagster knows to be over, and that never said so here."""
    with ledger.statement() as statement:
        begun = reports.open_runs(statement, [job.jobid for _, job in found.made])
    if not begun:
        return 0
    ended = dg.RunsFilter(run_ids=[one.external_id for one in begun], statuses=list(_ENDED))
    over = {one.run_id: one for one in instance.get_runs(ended)}
    return sum(end_badly(ledger, one.run_id, over[one.external_id]) for one in begun if one.external_id in over)


def _tell_dagster(
    instance: dg.DagsterInstance, ledger: Ledger, found: Catalogue, place: Place, grace: timedelta
) -> tuple[Place, int]:
    name, after = orchestrator_name(instance), place.reported
    with ledger.statement() as statement:
        versions = reports.unreported(statement, name, after=after, grace=grace, count=_REPORTED_AT_ONCE)
        foreign = reports.unreported_foreign(
            statement, list(found.entries), after=place.foreign, grace=grace, count=_REPORTED_AT_ONCE
        )
        unknown = [one.manifest for one in versions if one.news and one.manifest.datasetid in found.entries]
        how = reports.how_made(statement, [one.manifest_id for one in unknown])
    news = [_version(found, one, how.get(one.manifest_id)) for one in unknown]
    news += [
        Materialized(
            asset_key=found.entries[one.key.datasetid].asset_key,
            dataid=one.key.dataid,
            metadata=metadata.of_foreign(
                f"made READY by {one.jobid} at {one.modified:%Y-%m-%d %H:%M:%S}, without a version"
            ),
        )
        for one in foreign
    ]
    _report(instance, ledger, found, news)
    for one in versions:
        if not one.settled:
            break
        after = one.manifest.manifest_id
    if after > place.reported:
        with ledger.statement() as statement:
            reports.forget(statement, name, after)
    return replace(place, reported=after, foreign=foreign[-1].place if foreign else place.foreign), len(news)


def _version(found: Catalogue, manifest: Manifest, how: reports.HowMade | None) -> Materialized:
    return Materialized(
        asset_key=found.entries[manifest.datasetid].asset_key,
        dataid=manifest.dataid,
        metadata=metadata.of_manifest(manifest, how, f"published by job {manifest.jobid}; reported by heal"),
        manifest_id=manifest.manifest_id,
    )


def _report(instance: dg.DagsterInstance, ledger: Ledger, found: Catalogue, news: Sequence[Materialized]) -> None:
    by_asset: dict[dg.AssetKey, list[Materialized]] = {}
    for one in news:
        by_asset.setdefault(one.asset_key, []).append(one)
    for entry in found.entries.values():
        batch = by_asset.get(entry.asset_key, [])
        if batch and entry.dataset.partitions is None:
            # Dagster must know a dynamic partition before it shows it.
            instance.add_dynamic_partitions(entry.dataset.datasetid, [one.dataid for one in batch])
        write_materializations(instance, ledger, batch, Origin())
