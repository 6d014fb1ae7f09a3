"""kill -9 of the run, of Spark's driver, of Postgres, of the daemon and of all at once, at every moment of a chunk.

Nothing but the dead `make dev` or daemon itself is started again by hand; everything heals by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow.parquet
import pytest

from opendataflow_dagster.model.errors import OpenDataFlowError
from opendataflow_dagster.model.ids import ChunkKey, DataId, DatasetId, JobId
from opendataflow_dagster.model.job import Job
from opendataflow_dagster.model.manifest import Manifest
from opendataflow_dagster.protocol.register import plan
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.dagster_dev import Dev, dagster_dev
from tests.dagster_server import ROOT

DAYS = [DataId(f"2024-01-{number:02}") for number in range(1, 11)]
KEYS = [ChunkKey(datasetid=DatasetId(name), dataid=day) for name in ("raw", "tidy") for day in DAYS]

Rows = Mapping[ChunkKey, list[tuple[object, ...]]]
#: The moment, and the days whose work waits there for it.
Strike = tuple[str, list[DataId]]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    pipeline = ROOT / "tests" / "pipelines" / "killed.py"
    with dagster_dev(tmp_path_factory.mktemp("killed"), pipeline, KEYS) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_held_afterwards(dev: Dev) -> Iterator[None]:
    """A test that failed shall not hold up the next ones."""
    yield
    dev.hold.let_go_of_all()


@pytest.fixture(scope="module")
def undisturbed(dev: Dev) -> Rows:
    """Every chunk once, with nobody killed."""

    def planned() -> bool:
        with dev.ledger() as ledger:
            try:
                plan(ledger, Job(jobid=JobId("raw"), outputs=(DatasetId("raw"),)), DAYS)
            except OpenDataFlowError:
                return False  # the code server has not registered it yet
        return True

    dev.wait_for("the registration", planned)
    dev.wait_for("every chunk READY", dev.is_ready)
    return rows(dev.current())


def rows(versions: Mapping[ChunkKey, Manifest]) -> Rows:
    """What lies in the files of these versions; no ledger is asked, and no Spark."""
    return {
        key: sorted(
            tuple(row.values())
            for file in one.files
            for row in pyarrow.parquet.read_table(Path(one.location) / file.path).to_pylist()
        )
        for key, one in versions.items()
    }


def resubmit_all(dev: Dev, strikes: list[Strike]) -> None:
    """All chunks shall be made anew, and the work waits where it will be struck."""
    for moment, days in strikes:
        dev.hold.at(moment, *days)
    with dev.ledger() as ledger:
        resubmit(ledger, KEYS, by="test")


def wait_for(dev: Dev, moment: str, days: list[DataId]) -> None:
    for day in days:
        dev.wait_for(f"{moment} of {day}", partial(dev.hold.reached, moment, day))


def assert_all_made_once(dev: Dev, before: Mapping[ChunkKey, Manifest], undisturbed: Rows) -> None:
    dev.wait_for("every chunk READY again", dev.is_ready)
    after = dev.current()
    assert {key: after[key].version - before[key].version for key in KEYS} == dict.fromkeys(KEYS, 1)
    assert rows(after) == undisturbed


# A run makes two chunks at a time: where two wait, claimed ones wait behind them.
@pytest.mark.parametrize(
    ("victim", "strikes"),
    [
        ("run", [("compute", DAYS[:2]), ("staged", DAYS[4:6]), ("published", DAYS[9:])]),
        ("spark", [("staged", DAYS[2:4]), ("write", DAYS[6:7])]),
        ("postgres", [("staged", DAYS[:2]), ("write", DAYS[5:6])]),
        ("everything", [("published", DAYS[7:8])]),
    ],
    ids=["run", "spark", "postgres", "everything"],
)
def test_whoever_is_killed_every_chunk_heals_and_the_rows_are_those_of_an_undisturbed_run(
    dev: Dev, undisturbed: Rows, victim: str, strikes: list[Strike]
) -> None:
    before = dev.current()
    resubmit_all(dev, strikes)
    for moment, days in strikes:
        wait_for(dev, moment, days)
        running = [one for one in dev.chunks().values() if one.status == "RUNNING"]
        assert len(days) == 1 or len(running) > 2, "claims wait ahead"

        dev.kill(victim)
        assert rows(before) == undisturbed, "the versions before stay readable"
        dev.hold.let_go(moment, *days)
        if victim == "everything":
            dev.start()

    assert_all_made_once(dev, before, undisturbed)


def test_a_run_outlives_a_killed_daemon_and_the_next_daemon_goes_on(dev: Dev, undisturbed: Rows) -> None:
    before = dev.current()
    dev.stop()
    dev.start_code_server()
    daemon = dev.start_daemon()
    resubmit_all(dev, [("write", DAYS[1:2])])
    wait_for(dev, "write", DAYS[1:2])

    daemon.kill()
    daemon.wait()
    assert rows(before) == undisturbed, "the versions before stay readable"
    dev.hold.let_go("write", DAYS[1])
    dev.wait_for("all of raw, without a daemon", partial(dev.is_ready, "raw"))
    dev.start_daemon()

    assert_all_made_once(dev, before, undisturbed)


def test_afterwards_dagster_knows_every_version_that_the_ledger_has(dev: Dev, undisturbed: Rows) -> None:
    """Also those that a killed run could not tell it any more."""
    current = {key: one.version for key, one in dev.current().items()}

    dev.wait_for("the newest events", lambda: dev.known_to_dagster() == current)


def test_afterwards_no_killed_run_keeps_its_place_among_those_that_work(dev: Dev, undisturbed: Rows) -> None:
    dev.wait_for("no run that works", dev.is_at_rest)
