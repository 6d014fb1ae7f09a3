"""Every output has folders of its own: no sweep removes a file that another DataSet needs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from opendataflow_dagster.insight.drift import find_drift
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.definition import Definition, Registry, TableAddress
from opendataflow_dagster.model.errors import InvalidDefinition, InvalidInput, OpenDataFlowError
from opendataflow_dagster.model.ids import ClaimId, DataId, DatasetId
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.model.retention import Retention
from opendataflow_dagster.protocol.announce import announce
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.rollback import rollback
from opendataflow_dagster.protocol.sweep import Swept, sweep
from opendataflow_dagster.scripts.environment import provision
from opendataflow_dagster.warehouse.location import encoded, folder_of
from opendataflow_dagster.warehouse.sweep import claim_folders
from tests.factories import Flow, key
from tests.ledger.test_upstream import until_it_waits_or_ends

NOW = timedelta(0)
#: Keeps only the newest version, and nothing of failures.
STRICT = Retention(versions=1, failed=NOW, grace=NOW)


def dataset(name: str, location: str | Path | None) -> Dataset:
    return Dataset(datasetid=DatasetId(name), location=None if location is None else str(location))


def set_root(flow: Flow, name: str, location: str | Path) -> None:
    """As a ledger has it that was made before overlapping roots were refused."""
    with flow.psql.transaction():
        flow.type("set local session_replication_role = replica")
        flow.type("update dataflow.dataset set location = %s where datasetid = %s", str(location), name)


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture
def shared(flow: Flow) -> Flow:
    """A Job with two outputs in one root."""
    flow.register("split: -> left, right")
    for name in ("left", "right"):
        set_root(flow, name, flow.root / "both")
    return flow


def make(flow: Flow, folder: str, dataid: str = "1") -> Path:
    """Another version of both outputs, in the folder that 0.1.0 gave them."""
    taken = claim(flow.ledger, "split", dataid)
    location = flow.root / "both" / dataid / folder.format(taken.claim_id)
    location.mkdir(parents=True)
    (location / "part-0").write_bytes(b"xyz")
    manifest = NewManifest(location=str(location), files=(File(path="part-0", size=3),))
    publish(flow.ledger, taken, manifest)
    return location


def make_twice(flow: Flow, folder: str = "{}") -> tuple[Path, Path]:
    first = make(flow, folder)
    resubmit(flow.ledger, [key("left/1"), key("right/1")], by="test")
    return first, make(flow, folder)


def swept(flow: Flow, name: str, dry_run: bool = False) -> Swept:
    return sweep(flow.ledger, name, STRICT, by="test", dry_run=dry_run)


def locations(folders: tuple[object, ...]) -> list[str]:
    return [folder.location for folder in folders]  # type: ignore[attr-defined]


def test_a_sweep_of_one_output_keeps_the_current_version_of_another_in_the_same_folder(shared: Flow) -> None:
    first, second = make_twice(shared)
    rollback(shared.ledger, key("right/1"), 1, by="test")
    assert swept(shared, "left").versions == ()
    assert (first / "part-0").read_bytes() == b"xyz"
    assert second.is_dir()


def test_a_folder_that_versions_of_two_datasets_share_goes_when_neither_keeps_it(shared: Flow) -> None:
    first, second = make_twice(shared)
    kept = swept(shared, "left")
    assert (kept.versions, locations(kept.problems)) == ((), [str(first)])
    assert "right/1 version 1 needs files there" in kept.problems[0].why
    assert first.is_dir()
    assert locations(swept(shared, "right").versions) == [str(first)]
    assert (first.exists(), second.is_dir()) == (False, True)
    assert locations(swept(shared, "left").versions) == [str(first)]
    assert swept(shared, "left").versions == swept(shared, "left").problems == ()


def test_a_dry_run_reports_what_the_sweep_removes(shared: Flow) -> None:
    make_twice(shared)
    rehearsed, done = swept(shared, "left", dry_run=True), swept(shared, "left")
    assert locations(rehearsed.problems) == locations(done.problems)
    rehearsed, done = swept(shared, "right", dry_run=True), swept(shared, "right")
    assert locations(rehearsed.versions) == locations(done.versions) != []


def test_a_version_that_a_live_claim_of_another_dataset_reads_stays(shared: Flow) -> None:
    shared.register("use: right -> used", right=dataset("right", shared.root / "both"))
    first, _ = make_twice(shared)
    rollback(shared.ledger, key("right/1"), 1, by="test")
    reader = claim(shared.ledger, "use", "1")
    assert [manifest.location for manifest in reader.manifests] == [str(first)]
    resubmit(shared.ledger, [key("left/1"), key("right/1")], by="test")
    make(shared, "{}")
    swept(shared, "right")
    assert str(first) not in locations(swept(shared, "left").versions)
    assert first.is_dir()


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}", "/{}", "file:///{}"])
@pytest.mark.parametrize("part", ["", "/part-0", "//part-0", "/.."])
def test_a_folder_inside_or_around_a_version_of_any_dataset_stays(flow: Flow, spelling: str, part: str) -> None:
    flow.register("load: -> raw")
    register(flow.ledger, [dataset("theirs", None)])
    taken = claim(flow.ledger, "load", "1")
    folder = flow.root / "raw" / "1" / str(taken.claim_id)
    folder.mkdir(parents=True)
    (folder / "part-0").write_bytes(b"xyz")
    fail(flow.ledger, taken, "no luck")
    place = spelling.format(folder.parent if part == "/.." else f"{folder}{part}")
    announce(flow.ledger, "theirs", ["1"], by="test", manifests={key("theirs/1").dataid: NewManifest(location=place)})
    kept = swept(flow, "raw")
    assert (kept.orphans, locations(kept.problems)) == ((), [str(folder)])
    assert "theirs/1 version 1" in kept.problems[0].why
    assert folder.is_dir()


def test_a_sweep_stays_out_of_the_root_of_another_dataset_below_its_own(flow: Flow) -> None:
    """`raw` has a dataid named like the folder in which `inner` has its root."""
    flow.register("load: -> raw", "dig: -> inner")
    set_root(flow, "inner", flow.root / "raw" / "x")
    failed = claim(flow.ledger, "load", "x")
    fail(flow.ledger, failed, "no luck")
    live = flow.root / "raw" / "x" / str(failed.claim_id)
    live.mkdir(parents=True)
    found = swept(flow, "raw")
    assert (found.orphans, found.unknown) == ((), ())
    assert live.is_dir()


def test_an_old_version_in_which_another_dataset_has_its_root_stays(flow: Flow) -> None:
    """What the other DataSet writes there is not published yet."""
    flow.register("load: -> raw", "dig: -> inner")
    taken = claim(flow.ledger, "load", "x")
    old = flow.root / "raw" / "x" / str(taken.claim_id)
    old.mkdir(parents=True)
    publish(flow.ledger, taken, NewManifest(location=str(old)))
    resubmit(flow.ledger, [key("raw/x")], by="test")
    flow.produce("load", "x")
    set_root(flow, "inner", flow.root / "raw" / "x")
    live = Path(folder_of(str(flow.root / "raw" / "x"), DatasetId("inner"), DataId(old.name), ClaimId(99)))
    live.mkdir(parents=True)
    found = swept(flow, "raw")
    assert (found.versions, locations(found.problems)) == ((), [str(old)])
    assert live.is_dir()


def test_of_two_typed_registrations_at_once_the_second_sees_the_root_of_the_first(flow: Flow) -> None:
    insert = "insert into dataflow.dataset (datasetid, location) values (%s, %s)"

    def insert_second() -> None:
        flow.type(insert, "two", "/w/raw/deep")

    with psycopg.connect(flow.url) as first, ThreadPoolExecutor(1) as pool:
        first.execute(insert, ("one", "/w/raw"))
        second = pool.submit(insert_second)
        with psycopg.connect(flow.url, autocommit=True) as observer:
            until_it_waits_or_ends(observer, flow.psql.info.backend_pid, second)
        first.commit()
        # It waits, or gives up and says who is in the way.
        with pytest.raises(psycopg.Error, match=r"its root|lock"):
            second.result()
    assert flow.type("select from dataflow.dataset where datasetid = 'two'") == 0


def test_an_announcement_of_files_that_a_sweep_of_another_dataset_removed_is_refused(flow: Flow) -> None:
    flow.register("load: -> raw")
    register(flow.ledger, [dataset("theirs", None)])
    for _ in range(2):
        taken = claim(flow.ledger, "load", "1")
        location = flow.root / "raw" / "1" / f"{taken.claim_id}-raw"
        location.mkdir(parents=True)
        publish(flow.ledger, taken, NewManifest(location=str(location)))
        resubmit(flow.ledger, [key("raw/1")], by="test")
    (gone,) = swept(flow, "raw").versions
    manifests = {key("theirs/1").dataid: NewManifest(location=f"file://{gone.location}/part-0")}
    with pytest.raises(OpenDataFlowError, match="were swept"):
        announce(flow.ledger, "theirs", ["1"], by="test", manifests=manifests)


OVERLAPS = [
    ("/w/raw", "/w/raw"),
    ("/w/raw", "/w/raw/deep/er"),
    ("/w/raw/deep", "/w/raw"),
    ("/w/raw", "file:///w/raw"),
    ("file:/w/raw", "/w//raw/x/"),
    ("s3a://bucket/raw", "s3://bucket/raw/x"),
]


@pytest.mark.parametrize(("first", "second"), OVERLAPS)
def test_overlapping_roots_are_refused_with_both_names_and_a_next_step(flow: Flow, first: str, second: str) -> None:
    register(flow.ledger, [dataset("one", first)])
    with pytest.raises(InvalidDefinition, match=r"DataSet (one|two): its root .*; give each a root") as no:
        register(flow.ledger, [dataset("two", second)])
    assert "one" in str(no.value)
    assert "two" in str(no.value)
    with pytest.raises(psycopg.errors.Error, match="its root"):
        flow.type("insert into dataflow.dataset (datasetid, location) values ('typed', %s)", second)
    flow.type("insert into dataflow.dataset (datasetid) values ('typed')")
    with pytest.raises(psycopg.errors.Error, match="its root"):
        flow.type("update dataflow.dataset set location = %s where datasetid = 'typed'", second)


@pytest.mark.parametrize("second", ["/w/raw2", "/w/ra", "/w/other/raw", "s3://w/raw", "hdfs://w/raw", "/x/w/raw"])
def test_roots_beside_each_other_are_accepted(flow: Flow, second: str) -> None:
    register(flow.ledger, [dataset("one", "/w/raw"), dataset("two", second), dataset("three", None)])


@pytest.mark.parametrize("typed", ["{root}/x/../raw", "{root}/./raw", "..", "", "/"])
def test_a_typed_root_that_is_spelled_around_another_is_refused(flow: Flow, typed: str) -> None:
    flow.register("load: -> raw")
    register(flow.ledger, [dataset("theirs", None)])
    with pytest.raises(psycopg.errors.DatabaseError, match=r"DataSet theirs: '.*' is not a root"):
        flow.type("update dataflow.dataset set location = %s where datasetid = 'theirs'", typed.format(root=flow.root))


def test_two_datasets_may_swap_their_roots_at_once(flow: Flow) -> None:
    register(flow.ledger, [dataset("one", "/w/1"), dataset("two", "/w/2")])
    register(flow.ledger, [dataset("one", "/w/2"), dataset("two", "/w/1")])


def test_a_ledger_with_overlapping_roots_goes_on_working_and_is_reported(shared: Flow) -> None:
    root = str(shared.root / "both")
    left = Dataset(datasetid=DatasetId("left"), location=root, description="changed")
    assert register(shared.ledger, [left, dataset("right", root)]) == 1
    make_twice(shared)
    declared = Registry(datasets=(Definition(dataset=left, connection=TableAddress()),), jobs=())
    assert [(found.problem, found.name, found.detail) for found in find_drift(shared.ledger, declared).findings] == [
        ("OVERLAPS", "dataset right", f"its root {root} is also the root of DataSet left")
    ]
    with pytest.raises(InvalidDefinition, match="DataSet third"):
        register(shared.ledger, [dataset("third", f"{root}/third")])


def test_each_output_of_a_claim_has_a_folder_of_its_own(shared: Flow) -> None:
    taken = claim(shared.ledger, "split", "1")
    places = provision(shared.ledger, "split").places(taken)
    assert places == {name: str(shared.root / "both" / "1" / f"{taken.claim_id}-{name}") for name in ("left", "right")}


def test_sweeps_of_two_outputs_in_one_root_leave_each_other_alone(shared: Flow) -> None:
    """With folders of their own, even a shared root is safe, and nothing of the other is reported as unknown."""
    for _ in range(2):
        taken = claim(shared.ledger, "split", "1")
        places = provision(shared.ledger, "split").places(taken)
        for place in places.values():
            Path(place).mkdir(parents=True)
        publish(shared.ledger, taken, {name: NewManifest(location=place) for name, place in places.items()})
        resubmit(shared.ledger, [key("left/1"), key("right/1")], by="test")
    rollback(shared.ledger, key("right/1"), 1, by="test")
    done = swept(shared, "left")
    assert [Path(folder.location).name.partition("-")[2] for folder in done.versions] == ["left"]
    assert done.unknown == done.problems == done.orphans == ()
    assert sorted(path.name.partition("-")[2] for path in (shared.root / "both" / "1").iterdir()) == [
        "left",
        "right",
        "right",
    ]


@pytest.mark.parametrize("name", ["raw", "a/../b c", "=:*%~", "ü" * 100, "." * 200])
def test_any_name_of_a_dataset_makes_one_folder_that_its_sweep_finds(tmp_path: Path, name: str) -> None:
    datasetid, dataid, claim_id = DatasetId(name), DataId("2024/01 [ü]"), ClaimId(7)
    folder = Path(folder_of(str(tmp_path), datasetid, dataid, claim_id))
    folder.mkdir(parents=True)
    assert folder.parent == tmp_path / encoded(dataid)
    assert list(claim_folders(str(tmp_path), datasetid)) == [(dataid, claim_id, str(folder))]
    assert list(claim_folders(str(tmp_path), DatasetId("other"))) == []


def test_a_symlink_out_of_the_root_is_never_followed_by_the_sweep(flow: Flow, tmp_path: Path) -> None:
    flow.register("load: -> raw")
    taken = claim(flow.ledger, "load", "1")
    fail(flow.ledger, taken, "no luck")
    outside = tmp_path / "outside" / str(taken.claim_id)
    outside.mkdir(parents=True)
    (flow.root / "raw").mkdir()
    (flow.root / "raw" / "1").symlink_to(outside.parent)
    assert swept(flow, "raw").orphans == ()
    assert outside.is_dir()


def test_a_root_with_an_unknown_protocol_is_named_by_the_sweep(flow: Flow) -> None:
    flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw"), location="nosuch://bucket/raw"))
    with pytest.raises(InvalidInput, match="nosuch://bucket/raw cannot be opened"):
        swept(flow, "raw")
