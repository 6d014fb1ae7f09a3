"""With a real web server, daemon and code server: every trigger goes through the same claim, and failures recover."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from opendataflow_dagster.model.verdict import Code
from opendataflow_dagster.protocol.gate import gate
from tests.dagster_server import Server

CHAIN = ("raw", "tidy", "summary")
DAYS = [f"2024-01-{number:02}" for number in range(1, 31)]
#: At both ends: Dagster starts a run for each unbroken range of good days, and each run starts Spark.
BAD = [DAYS[0], DAYS[-1]]
GOOD = DAYS[1:-1]

Versions = dict[str, int | None]


def statuses(served: Server, datasetid: str, dataids: Iterable[str] = DAYS) -> dict[str, str | None]:
    return {dataid: served.project.flow.status(f"{datasetid}/{dataid}") for dataid in dataids}


def versions(served: Server, dataids: Iterable[str]) -> Versions:
    names = [f"{datasetid}/{dataid}" for datasetid in CHAIN for dataid in dataids]
    return {name: served.project.flow.chunk(name).version for name in names}


def is_ready(served: Server, datasetid: str, dataids: Iterable[str] = DAYS) -> bool:
    return set(statuses(served, datasetid, dataids).values()) == {"READY"}


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """What was seen at its end."""

    backfill_id: str
    statuses: dict[str, dict[str, str | None]]
    versions: Versions
    materialized: dict[str, set[str]]


@pytest.fixture(scope="module")
def backfill(served: Server) -> Backfill:
    """All three DataSets over thirty days, two of which cannot be made."""
    for day in BAD:
        (served.bad / day).touch()
    backfill_id = served.backfill(list(CHAIN), DAYS)
    served.wait_for("28 of summary", lambda: is_ready(served, "summary", GOOD))
    served.wait_for_backfill(backfill_id)
    found = Backfill(
        backfill_id=backfill_id,
        statuses={name: statuses(served, name, BAD) for name in CHAIN},
        versions=versions(served, GOOD),
        materialized={name: {day for day, _ in served.project.materializations(name)} & set(DAYS) for name in CHAIN},
    )
    for day in BAD:
        (served.bad / day).unlink()
    return found


@pytest.fixture(scope="module")
def repaired(served: Server, backfill: Backfill) -> Versions:
    """The versions after the backfill was executed again from its failures."""
    answer = served.graphql(
        """mutation ($params: ReexecutionParams!) { reexecutePartitionBackfill(reexecutionParams: $params) {
             __typename ... on LaunchBackfillSuccess { backfillId } } }""",
        params={"parentRunId": backfill.backfill_id, "strategy": "FROM_FAILURE"},
    )["reexecutePartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    served.wait_for_backfill(answer["backfillId"])
    assert is_ready(served, "raw")
    served.wait_for("the end of the chain", lambda: is_ready(served, "summary"))
    return versions(served, DAYS)


def test_a_backfill_of_three_datasets_makes_all_but_the_chunks_of_two_bad_days(backfill: Backfill) -> None:
    assert set(backfill.statuses["raw"].values()) == {"FAILED"}
    assert {status for name in ("tidy", "summary") for status in backfill.statuses[name].values()} <= {
        "ABSENT",
        "PENDING",
    }
    assert set(backfill.versions.values()) == {1}, "nothing ran twice, though backfill and sensor both wanted it"
    assert backfill.materialized == {name: set(GOOD) for name in CHAIN}


def test_a_backfill_executed_again_from_failure_makes_only_the_failed_chunks(repaired: Versions) -> None:
    assert set(repaired.values()) == {1}


def test_a_launched_job_remakes_a_ready_chunk_and_its_consumers_are_stale(served: Server, repaired: Versions) -> None:
    flow, day = served.project.flow, DAYS[1]
    served.wait_for_run(served.launch("raw", day))

    assert versions(served, [day]) == {f"raw/{day}": 2, f"tidy/{day}": 1, f"summary/{day}": 1}, "nothing else runs"
    newest, *_ = [told for dataid, told in served.project.materializations("raw") if dataid == day]
    assert newest["version"] == 2
    (verdict,) = gate(flow.ledger, "summary", [day])
    assert verdict.code == Code.WRONG_DATA
    assert f"tidy/{day} is stale: it was made from version 1 of raw/{day}, but version 2 is current" in str(verdict)


def test_a_job_launched_before_its_input_is_ready_fails_with_the_code(served: Server) -> None:
    run = served.wait_for_run(served.launch("tidy", "2024-02-01"))

    assert run.is_failure
    (failure,) = [
        entry.dagster_event.step_failure_data.user_failure_data
        for entry in served.project.instance.all_logs(run.run_id)
        if entry.dagster_event and entry.dagster_event.is_step_failure
    ]
    assert failure is not None
    assert "2024-02-01: DATA_NOT_READY" in (failure.description or "")


def test_resubmit_typed_in_sql_for_fifty_chunks_runs_them_all_producers_first(
    served: Server, repaired: Versions
) -> None:
    flow = served.project.flow
    days = GOOD[1:17]
    chosen = [f"{name}/{day}" for name in CHAIN for day in days] + [f"raw/{day}" for day in BAD]
    assert len(chosen) == 50

    changed = flow.type(
        "update dataflow.datastatus set status = 'RESUBMIT' where locktype = 'OUT'"
        " and (dataid = any (%s) or datasetid = 'raw' and dataid = any (%s))",
        days,
        BAD,
    )

    assert changed == 50
    served.wait_for("every chunk READY", lambda: all(is_ready(served, name) for name in CHAIN))
    assert set(versions(served, days).values()) == {2}
    for day in days:
        made_from = flow.psql.execute(
            "select m.datasetid, m.inputs -> 0 ->> 'version' from dataflow.data_manifest m"
            " where m.dataid = %s and m.version = 2 order by m.manifest_id",
            (day,),
        ).fetchall()
        assert made_from == [("raw", None), ("tidy", "2"), ("summary", "2")], "each was made from the new version"


@pytest.mark.parametrize("name", CHAIN)
def test_dagster_learns_every_version_that_the_ledger_has(served: Server, repaired: Versions, name: str) -> None:
    def newest() -> dict[str, object]:
        told: dict[str, object] = {}
        for dataid, metadata in served.project.materializations(name):
            told.setdefault(dataid, metadata["version"])
        return {day: told.get(day) for day in DAYS}

    current = {day: served.project.flow.chunk(f"{name}/{day}").version for day in DAYS}
    served.wait_for("every event", lambda: newest() == current)
