"""Registering code: unchanged definitions are not written again, and hundreds of Jobs take a few statements."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.job import Policy
from opendataflow_dagster.model.partitions import daily
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.register import register
from tests.factories import Flow, job
from tests.statements import count_statements


def test_registering_unchanged_code_writes_nothing_and_blocks_no_claim(flow: Flow) -> None:
    """Every Dagster process registers the code it loads."""
    raw = Dataset(datasetid=DatasetId("raw"), partitions=daily("2024-01-01"), owner="ada")
    load = replace(job("load: -> raw", Policy(lease=timedelta(hours=1))), environment={"A": "1", "B": None})
    assert register(flow.ledger, [raw], [load]) == 2
    flow.plan(load, ["2024-01-01"])
    with psycopg.connect(flow.url) as claimer:
        # Locks the tables as a claim does; registering unchanged code does not wait for it.
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
    # An output moves from one Job to another in one call.
    assert (
        register(flow.ledger, [Dataset(datasetid=DatasetId("other"))], [job("load: -> other"), job("new: -> raw")]) == 3
    )
    assert flow.psql.execute(
        "select jobid from dataflow.job where datasetid = 'raw' and itemtype = 'OUT'"
    ).fetchall() == [("new",)]


def rows(flow: Flow) -> dict[tuple[str, str], str | None]:
    found = flow.psql.execute("select jobid || ' ' || itemtype, datasetid from dataflow.job")
    return {("job", str(row[0])): row[1] for row in found}


def test_seven_hundred_jobs_take_as_many_statements_as_seven(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on the server: a mark for each Job would be as many locks."""

    def marks(ledger: Ledger) -> int:
        with ledger.statement() as statement:
            statement.run_text(b"select pg_stat_force_next_flush()")
        calls = "select sum(calls) from pg_stat_user_functions where funcname = 'unsettle'"
        row = flow.psql.execute(calls).fetchone()
        assert row is not None
        return int(row[0] or 0)

    def registered(ledger: Ledger, numbers: range) -> tuple[Counter[str], int]:
        jobs = [job(f"job_{n}: {'' if n % 7 == 0 else f'set_{n - 1}'} -> set_{n}") for n in numbers]
        datasets = [Dataset(datasetid=DatasetId(f"set_{n}")) for n in numbers]
        before = marks(ledger)
        statements.clear()
        assert register(ledger, datasets, jobs) == 2 * len(numbers)
        assert register(ledger, datasets, jobs) == 0
        sent = Counter(statements)
        return sent, marks(ledger) - before

    statements = count_statements(monkeypatch)
    with Ledger(make_conninfo(flow.url, options="-c track_functions=pl"), connections=1) as ledger:
        few, many = registered(ledger, range(7)), registered(ledger, range(7, 707))
    assert few == many
    assert few[1] > 0, "the counter counts"


def test_processes_that_load_the_same_new_code_at_once_register_it_once(flow: Flow) -> None:
    jobs = [job(f"job_{n}: -> set_{n}") for n in range(20)]
    datasets = [Dataset(datasetid=DatasetId(f"set_{n}")) for n in range(20)]
    barrier = Barrier(6)

    def load(_: int) -> int:
        with Ledger(flow.url) as ledger:
            barrier.wait()
            return register(ledger, datasets, jobs)

    with ThreadPoolExecutor(6) as pool:
        counts = list(pool.map(load, range(6)))
    assert sorted(counts) == [0, 0, 0, 0, 0, 40]
