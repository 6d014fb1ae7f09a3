"""The heal sensor: restores the ledger's invariants, and reports to Dagster what it does not know yet.

Each tick continues where the last one stopped, so its cost does not grow with the number of chunks.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta

import dagster as dg

from ..engine.connections import Ledger
from ..engine.dataset_graph import DatasetGraph
from ..engine.orchestrator_runs import close_run, open_runs
from ..engine.unreported import Position, find_unreported, forget_reported
from ..protocol.heal import heal
from .dagster_internals import EventOrigin
from .events import make_partitions_known, orchestrator_name, write_events
from .metadata import event_of
from .resources import LedgerResource
from .run_config import asset_key_of
from .run_status_sensors import is_cancelled
from .silent_runs import SilentRuns
from .tick import state_of, tick

_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


def heal_sensor(
    graph: DatasetGraph, *, interval_seconds: int = 15, grace: timedelta = timedelta(seconds=30)
) -> dg.SensorDefinition:
    """`grace`: a run reports its versions within seconds; older ones that are unknown are reported here."""

    silent_runs = SilentRuns(graph)

    @dg.sensor(
        name="heal",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Handles expired leases, retries and dead runs, and reports chunks that Dagster does not know.",
    )
    def evaluate(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
        store = ledger.ledger
        state = json.loads(state_of(context.cursor) or "{}")
        position = Position(**{name: state[name] for name in ("reported", "foreign") if name in state})
        healed = heal(store)
        ended = silent_runs.end(context, store)
        dead = _close_dead_runs(context.instance, store, graph)
        position, reported = _report(context.instance, store, graph, position, grace)
        summary = f"{healed}; silent runs: {ended} ended; dead runs: {dead} chunks; reported to Dagster: {reported}"
        also = {"runs ended": ended, "chunks of dead runs": dead, "reported": reported}
        done = [f"{count:,} {what}" for what, count in {**healed.counts, **also}.items() if count]
        done += [f"stale: {left}" for left in healed.left_stale]
        # Without what no installation without foreign clients has: the list shows little.
        state = {name: value for name, value in asdict(position).items() if value != getattr(Position(), name)}
        return tick(", ".join(done) or "nothing to heal", in_full=summary, state=json.dumps(state) if state else "")

    return evaluate


def _close_dead_runs(instance: dg.DagsterInstance, ledger: Ledger, graph: DatasetGraph) -> int:
    """Close runs that ended in Dagster but not in the ledger; how many chunks they held."""
    begun = open_runs(ledger, [job.jobid for _, job in graph.produced])
    if not begun:
        return 0
    over = dg.RunsFilter(run_ids=[run.external_id for run in begun], statuses=list(_ENDED))
    ended = {run.run_id: run for run in instance.get_runs(over)}
    return sum(
        close_run(ledger, run.run_id, run.external_id, cancelled=is_cancelled(ended[run.external_id]))
        for run in begun
        if run.external_id in ended
    )


def _report(
    instance: dg.DagsterInstance, ledger: Ledger, graph: DatasetGraph, position: Position, grace: timedelta
) -> tuple[Position, int]:
    name = orchestrator_name(instance)
    unreported = find_unreported(ledger, name, list(graph.nodes), position, grace)
    events = [
        event_of(
            asset_key_of(graph.nodes[manifest.datasetid]),
            manifest.dataid,
            f"published by job {manifest.jobid}; reported by heal",
            manifest,
            unreported.how_made.get(manifest.manifest_id),
        )
        for manifest in unreported.versions
    ]
    events += [
        event_of(
            asset_key_of(graph.nodes[foreign.key.datasetid]),
            foreign.key.dataid,
            f"made READY by {foreign.jobid} at {foreign.modified:%Y-%m-%d %H:%M:%S}, without a version",
        )
        for foreign in unreported.foreign
    ]
    for node in graph.producers_first():
        of_node = [event for event in events if event.asset_key == asset_key_of(node)]
        make_partitions_known(instance, node, of_node)
        write_events(instance, ledger, graph, node, of_node, EventOrigin())
    following = unreported.next_position
    if following.reported > position.reported:
        forget_reported(ledger, name, following)
    return following, len(events)
