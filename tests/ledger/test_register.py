"""Registering code: equal definitions are not written again, and hundreds of Jobs take a few statements."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier

import psycopg

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.job import Policy
from opendataflow_dagster.model.partitions import daily
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.register import register
from tests.factories import Flow, job


def test_registering_unchanged_code_writes_nothing_and_blocks_no_claim(flow: Flow) -> None:
    """Every Dagster process registers the code it loads."""
    raw = Dataset(datasetid=DatasetId("raw"), partitions=daily("2024-01-01"), owner="ada")
    load = replace(job("load: -> raw", Policy(lease=timedelta(hours=1))), environment={"A": "1", "B": None})
    assert register(flow.ledger, [raw], [load]) == 2
    flow.plan(load, ["2024-01-01"])
    with psycopg.connect(flow.url) as claimer:
        # This transaction holds the locks of a claim; registering unchanged code does not wait for it.
        claimer.execute(
            "lock table dataflow.datastatus, dataflow.job, dataflow.dataset, dataflow.job_policy in row exclusive mode"
        )
        assert register(flow.ledger, [raw], [load]) == 0
    assert len(claim_next(flow.ledger, "load")) == 1


def test_only_changed_definitions_are_counted_and_written(flow: Flow) -> None:
    raw, load = Dataset(datasetid=DatasetId("raw")), job("load: -> raw")
    clean = job("clean: raw -> tidy")
    tidy = Dataset(datasetid=DatasetId("tidy"))
    register(flow.ledger, [raw, tidy], [load, clean])
    before = rows(flow)
    assert register(flow.ledger, [raw, replace(tidy, owner="ada")], [load, clean]) == 1
    assert register(flow.ledger, [], [replace(clean, policy=Policy(max_attempts=7))]) == 1
    assert register(flow.ledger, [], [replace(load, environment={"X": None})]) == 1
    assert rows(flow) == {**before, ("job", "load X"): None}
    # An output can move from one Job to another in one call.
    assert (
        register(flow.ledger, [Dataset(datasetid=DatasetId("other"))], [job("load: -> other"), job("new: -> raw")]) == 3
    )
    assert flow.psql.execute(
        "select jobid from dataflow.job where datasetid = 'raw' and itemtype = 'OUT'"
    ).fetchall() == [("new",)]


def rows(flow: Flow) -> dict[tuple[str, str], str | None]:
    found = flow.psql.execute("select jobid || ' ' || itemtype, datasetid from dataflow.job")
    return {("job", str(row[0])): row[1] for row in found}


def test_seven_hundred_jobs_are_registered_in_seconds(flow: Flow) -> None:
    jobs = [job(f"job_{one}: {'' if one % 7 == 0 else f'set_{one - 1}'} -> set_{one}") for one in range(700)]
    datasets = [Dataset(datasetid=DatasetId(f"set_{one}")) for one in range(700)]
    began = time.monotonic()
    assert register(flow.ledger, datasets, jobs) == 1400
    assert register(flow.ledger, datasets, jobs) == 0
    # It took more than a minute when every Job made the runnable set anew.
    assert time.monotonic() - began < 20


def test_processes_that_load_new_code_concurrently_register_it_once(flow: Flow) -> None:
    jobs = [job(f"job_{number}: -> set_{number}") for number in range(20)]
    datasets = [Dataset(datasetid=DatasetId(f"set_{number}")) for number in range(20)]
    barrier = Barrier(6)

    def load(_: int) -> int:
        with Ledger(flow.url) as ledger:
            barrier.wait()
            return register(ledger, datasets, jobs)

    with ThreadPoolExecutor(6) as pool:
        counts = list(pool.map(load, range(6)))
    assert sorted(counts) == [0, 0, 0, 0, 0, 40]
