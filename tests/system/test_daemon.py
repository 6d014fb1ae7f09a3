"""With a real web server, daemon and code server: every trigger goes through the same claim, and what failed heals.

The tests go on from each other: starting Spark for each would take minutes.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from opendataflow_dagster.model.verdict import Code
from opendataflow_dagster.protocol.gate import gate
from tests.dagster_server import Server

CHAIN = ("raw", "tidy", "summary")
DAYS = [f"2024-01-{number:02}" for number in range(1, 31)]
#: At the ends: Dagster makes a run for each unbroken range of good ones, and each run starts a Spark.
BAD = {"2024-01-01", "2024-01-30"}


def statuses(served: Server, datasetid: str, dataids: Iterable[str] = DAYS) -> dict[str, str | None]:
    return {one: served.project.flow.status(f"{datasetid}/{one}") for one in dataids}


def test_of_a_backfill_over_three_datasets_all_but_the_two_bad_chunks_reach_the_end(served: Server) -> None:
    for one in BAD:
        (served.bad / one).touch()
    good = [one for one in DAYS if one not in BAD]

    backfill = served.backfill(list(CHAIN), DAYS)

    served.wait_for("28 of summary", lambda: set(statuses(served, "summary", good).values()) == {"READY"})
    assert {statuses(served, "raw")[one] for one in BAD} == {"FAILED"}
    assert {statuses(served, name)[one] for one in BAD for name in ("tidy", "summary")} <= {"ABSENT", "PENDING"}
    versions = {served.project.flow.chunk(f"{name}/{one}").version for name in CHAIN for one in good}
    assert versions == {1}, "nothing ran twice, though backfill and sensor both wanted it"

    served.wait_for_backfill(backfill)
    told = {name: [one for one, _ in served.project.materializations(name)] for name in CHAIN}
    assert {name: set(DAYS) & set(days) for name, days in told.items()} == {name: set(good) for name in CHAIN}


def test_executing_a_backfill_again_from_its_failures_makes_those_and_nothing_else(served: Server) -> None:
    for one in BAD:
        (served.bad / one).unlink()
    (failed,) = served.project.instance.get_backfills(limit=1)

    answer = served.graphql(
        """mutation ($params: ReexecutionParams!) { reexecutePartitionBackfill(reexecutionParams: $params) {
             __typename ... on LaunchBackfillSuccess { backfillId } } }""",
        params={"parentRunId": failed.backfill_id, "strategy": "FROM_FAILURE"},
    )["reexecutePartitionBackfill"]

    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    served.wait_for_backfill(answer["backfillId"])
    assert set(statuses(served, "raw").values()) == {"READY"}
    served.wait_for("the end of the chain", lambda: set(statuses(served, "summary").values()) == {"READY"})
    assert {served.project.flow.chunk(f"{name}/{one}").version for name in CHAIN for one in DAYS} == {1}


def test_a_launched_job_makes_its_ready_chunk_anew_and_its_consumers_say_that_they_are_out_of_date(
    served: Server,
) -> None:
    flow = served.project.flow
    served.wait_for_run(served.launch("raw", DAYS[1]))

    assert [flow.chunk(f"{name}/{DAYS[1]}").version for name in CHAIN] == [2, 1, 1], "nothing else runs"
    newest, *_ = [told for dataid, told in served.project.materializations("raw") if dataid == DAYS[1]]
    assert newest["version"] == 2
    (asked,) = gate(flow.ledger, "summary", [DAYS[1]])
    assert asked.code == Code.WRONG_DATA
    assert f"tidy/{DAYS[1]} is out of date: made from raw/{DAYS[1]} version 1, current is version 2" in str(asked)


def test_a_job_launched_before_its_input_is_ready_fails_with_the_code(served: Server) -> None:
    run = served.wait_for_run(served.launch("tidy", "2024-02-01"))

    assert run.is_failure
    (failure,) = [
        one.dagster_event.step_failure_data.user_failure_data
        for one in served.project.instance.all_logs(run.run_id)
        if one.dagster_event and one.dagster_event.is_step_failure
    ]
    assert failure is not None
    assert "2024-02-01: DATA_NOT_READY" in (failure.description or "")


def test_resubmit_typed_in_sql_for_fifty_chunks_of_three_datasets_runs_them_all_producers_first(
    served: Server,
) -> None:
    flow = served.project.flow
    wanted = [one for one in DAYS if one not in BAD][1:17]
    chosen = [f"{name}/{one}" for name in CHAIN for one in wanted] + [f"raw/{one}" for one in sorted(BAD)]
    assert len(chosen) == 50

    changed = flow.type(
        "update dataflow.datastatus set status = 'RESUBMIT' where locktype = 'OUT'"
        " and (dataid = any (%s) or datasetid = 'raw' and dataid = any (%s))",
        wanted,
        sorted(BAD),
    )

    assert changed == 50
    served.wait_for(
        "every chunk READY", lambda: all(set(statuses(served, name).values()) == {"READY"} for name in CHAIN)
    )
    assert {flow.chunk(f"{name}/{one}").version for name in CHAIN for one in wanted} == {2}
    for one in wanted:
        versions = flow.psql.execute(
            "select m.datasetid, m.inputs -> 0 ->> 'version' from dataflow.data_manifest m"
            " where m.dataid = %s and m.version = 2 order by m.manifest_id",
            (one,),
        ).fetchall()
        assert versions == [("raw", None), ("tidy", "2"), ("summary", "2")], "each was made from the new version"


@pytest.mark.parametrize("name", CHAIN)
def test_afterwards_dagster_and_the_ledger_know_the_same(served: Server, name: str) -> None:
    served.wait_for("every event", lambda: {one for one, _ in served.project.materializations(name)} >= set(DAYS))
    newest: dict[str, object] = {}
    for dataid, told in served.project.materializations(name):
        newest.setdefault(dataid, told["version"])

    assert {one: newest[one] for one in DAYS} == {
        one: served.project.flow.chunk(f"{name}/{one}").version for one in DAYS
    }
