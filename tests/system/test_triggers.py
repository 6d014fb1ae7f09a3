"""With a real web server and daemon: concurrent triggers, and runs that end before their work."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from opendataflow_dagster.ledger.chunks import Chunk
from tests.dagster_server import Server


def test_two_concurrent_backfills_of_the_same_chunks_publish_one_version_each(served: Server) -> None:
    days = ["2024-02-10", "2024-02-11", "2024-02-12"]
    served.hold.at("compute", days[0])

    backfills = [served.backfill(["raw"], days), served.backfill(["raw"], days)]

    def both_work() -> bool:
        started = [dg.DagsterRunStatus.STARTED]
        wanted = [dg.RunsFilter(statuses=started, tags={"dagster/backfill": backfill_id}) for backfill_id in backfills]
        return all(served.project.instance.get_runs_count(runs) for runs in wanted)

    served.wait_for("a run of each", both_work)
    served.hold.let_go("compute", days[0])
    for backfill_id in backfills:
        served.wait_for_backfill(backfill_id)
    assert {day: served.project.flow.chunk(f"raw/{day}").version for day in days} == dict.fromkeys(days, 1)
    assert {day for day, _ in served.project.materializations("raw")} >= set(days)


def test_a_partition_is_materialized_in_the_terminal_through_the_same_claim(served: Server) -> None:
    day = "2024-02-15"

    command = ("asset", "materialize", "-f", "tests/pipelines/chain.py", "--select", "raw", "--partition", day)
    done = served.cli(*command)

    assert done.returncode == 0, done.stdout + done.stderr
    made = served.project.flow.chunk(f"raw/{day}")
    assert (made.status, made.version) == ("READY", 1)
    assert [told["version"] for dataid, told in served.project.materializations("raw") if dataid == day] == [1]


def test_a_run_terminated_in_the_ui_ends_its_work_and_claims_before_the_lease(served: Server) -> None:
    run_id, waiting, held = begin_and_hold(served, "write", "2024-02-20")

    ended = served.graphql("mutation ($id: String!) { terminateRun(runId: $id) { __typename } }", id=run_id)

    assert ended["terminateRun"]["__typename"] == "TerminateRunSuccess"
    wait_for_release(served, held)
    served.wait_for("the end of the work", lambda: not Path(f"/proc/{waiting}").exists())
    served.hold.let_go("write", held.dataid)
    assert served.wait_for_run(run_id).status == dg.DagsterRunStatus.CANCELED
    served.wait_for("the sensor", lambda: acted(served, "claims_of_cancelled_runs", run_id))
    chunk = served.project.flow.chunk("raw/2024-02-20")
    assert (chunk.status, chunk.reason) == ("FAILED", f"cancelled by a person in Dagster (run {run_id})")


def test_a_killed_run_releases_its_claims_before_the_lease_and_its_chunk_heals(served: Server) -> None:
    run_id, waiting, held = begin_and_hold(served, "compute", "2024-02-21")

    os.kill(waiting, signal.SIGKILL)
    served.hold.let_go("compute", held.dataid)

    wait_for_release(served, held)
    served.wait_for("the sensor", lambda: acted(served, "claims_of_failed_runs", run_id))
    served.wait_for("the chunk", lambda: served.project.flow.status("raw/2024-02-21") == "READY")
    assert served.project.flow.chunk("raw/2024-02-21").version == 1


def begin_and_hold(served: Server, moment: str, day: str) -> tuple[str, int, Chunk]:
    """Start a run that waits at this moment; return it, the waiting process and the chunk with its claim."""
    served.hold.at(moment, day)
    run_id = served.launch("raw", day)
    served.wait_for("the work", lambda: served.hold.reached(moment, day))
    waiting = served.hold.reached(moment, day)
    assert waiting is not None
    return run_id, waiting, served.project.flow.chunk(f"raw/{day}")


def wait_for_release(served: Server, held: Chunk) -> None:
    assert held.lease_until is not None
    served.wait_for(
        "the end of the claim",
        lambda: served.project.flow.chunk(f"{held.datasetid}/{held.dataid}").claim_id != held.claim_id,
    )
    assert datetime.now(UTC) < held.lease_until


def acted(served: Server, sensor: str, run_id: str) -> bool:
    """Dagster notes in a run which sensor has acted on its end."""
    return any(f'Sensor "{sensor}" acted on' in event.message for event in served.project.instance.all_logs(run_id))
