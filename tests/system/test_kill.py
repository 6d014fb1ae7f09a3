"""kill -9 of the run, Spark's driver, Postgres, the daemon, or all at once, at every moment of a chunk.

Tests restart only the killed `odf dev` or daemon itself; everything else recovers on its own.
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
from tests.pipelines.hold import ANY

DAYS = [DataId(f"2024-01-{number:02}") for number in range(1, 11)]
KEYS = [ChunkKey(datasetid=DatasetId(name), dataid=day) for name in ("raw", "tidy") for day in DAYS]

Rows = Mapping[ChunkKey, list[tuple[object, ...]]]
#: A moment, and how many chunks must wait there when the victim is killed.
Strike = tuple[str, int]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    pipeline = ROOT / "tests" / "pipelines" / "killed.py"
    with dagster_dev(tmp_path_factory.mktemp("killed"), pipeline, KEYS) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_held_afterwards(dev: Dev) -> Iterator[None]:
    """A failed test must not block the next one."""
    yield
    dev.hold.let_go_of_all()


@pytest.fixture(scope="module")
def undisturbed(dev: Dev) -> Rows:
    """The rows of every chunk, made once with no process killed."""

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
    """Read from the files of these versions, without the ledger and without Spark."""
    return {
        key: sorted(
            tuple(row.values())
            for file in manifest.files
            for row in pyarrow.parquet.read_table(Path(manifest.location) / file.path).to_pylist()
        )
        for key, manifest in versions.items()
    }


def resubmit_all(dev: Dev) -> None:
    with dev.ledger() as ledger:
        resubmit(ledger, KEYS, by="test")


def wait_at(dev: Dev, moment: str, count: int) -> None:
    """Any chunks: a run may begin them in any order."""
    dev.wait_for(f"{count} chunks at {moment}", lambda: dev.hold.count_waiting(moment) >= count)


def wait_for_claims_ahead(dev: Dev, count: int) -> None:
    """A run claims more chunks than it computes, so the kill hits claims that have not begun, too."""

    def claimed() -> int:
        return sum(chunk.status == "RUNNING" for chunk in dev.chunks().values())

    dev.wait_for(f"more than {count} claims", lambda: claimed() > count)


def assert_recovered(dev: Dev, before: Mapping[ChunkKey, Manifest], undisturbed: Rows) -> None:
    dev.wait_for("every chunk READY again", dev.is_ready)
    after = dev.current()
    assert {key: after[key].version - before[key].version for key in KEYS} == dict.fromkeys(KEYS, 1)
    assert rows(after) == undisturbed
    versions = {key: manifest.version for key, manifest in after.items()}
    dev.wait_for("an event in Dagster for every version", lambda: dev.known_to_dagster() == versions)
    dev.wait_for("the end of every killed run in Dagster", dev.is_at_rest)


# A run computes two chunks at a time.
@pytest.mark.parametrize(
    ("victim", "strikes"),
    [
        ("run", [("compute", 2), ("staged", 2), ("published", 1)]),
        ("spark", [("staged", 2), ("write", 1)]),
        ("postgres", [("staged", 2), ("write", 1)]),
        ("everything", [("published", 1)]),
    ],
    ids=["run", "spark", "postgres", "everything"],
)
def test_after_kill_9_every_chunk_is_published_once_with_the_same_rows(
    dev: Dev, undisturbed: Rows, victim: str, strikes: list[Strike]
) -> None:
    before = dev.current()
    first, _ = strikes[0]
    dev.hold.at(first, ANY)
    resubmit_all(dev)
    for (moment, count), following in zip(strikes, [*strikes[1:], None], strict=True):
        wait_at(dev, moment, count)
        if count > 1:
            wait_for_claims_ahead(dev, count)

        dev.kill(victim)
        assert rows(before) == undisturbed, "the previous versions stay readable"
        if following is not None:
            dev.hold.at(following[0], ANY)
        dev.hold.let_go(moment, ANY)
        if victim == "everything":
            dev.start()

    assert_recovered(dev, before, undisturbed)


def test_a_run_outlives_a_killed_daemon_and_the_next_daemon_continues(dev: Dev, undisturbed: Rows) -> None:
    before = dev.current()
    dev.stop()
    dev.start_code_server()
    daemon = dev.start_daemon()
    dev.hold.at("write", ANY)
    resubmit_all(dev)
    wait_at(dev, "write", 1)

    daemon.kill()
    daemon.wait()
    assert rows(before) == undisturbed, "the previous versions stay readable"
    dev.hold.let_go("write", ANY)
    dev.wait_for("all of raw, without a daemon", partial(dev.is_ready, "raw"))
    dev.start_daemon()

    assert_recovered(dev, before, undisturbed)
