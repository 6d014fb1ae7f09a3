"""sweep removes what retention does not keep, and never what is current, in use, running or unknown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from opendataflow_dagster.ledger import sweeps
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.errors import InvalidDefinition, InvalidInput, OpenDataFlowError, UnknownName
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.job import ListedChunks
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.model.retention import Retention
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.rollback import rollback
from opendataflow_dagster.protocol.sweep import Swept, sweep
from opendataflow_dagster.warehouse.location import folder_of
from tests.factories import Flow, job, key

NOW = timedelta(0)
#: Keeps only the newest version, and nothing of failures.
STRICT = Retention(versions=1, failed=NOW, grace=NOW)
DATAID = "2024/01 [ü]"


def write(flow: Flow, taken: Claim, size: int = 3) -> Path:
    folder = Path(folder_of(str(flow.root / taken.outputs[0]), taken.outputs[0], taken.dataid, taken.claim_id))
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_bytes(b"x" * size)
    return folder


def make(flow: Flow, dataid: str = DATAID, jobid: str = "load") -> Path:
    """Another version of the chunk."""
    taken = claim(flow.ledger, jobid, dataid)
    folder = write(flow, taken)
    files = (File(path="part-0.parquet", size=3),)
    publish(flow.ledger, taken, NewManifest(location=str(folder), files=files))
    return folder


def make_again(flow: Flow, dataid: str = DATAID) -> Path:
    resubmit(flow.ledger, [key(f"raw/{dataid}")], by="test")
    return make(flow, dataid)


def swept(flow: Flow, retention: Retention = STRICT, dry_run: bool = False) -> Swept:
    return sweep(flow.ledger, "raw", retention, by="test", dry_run=dry_run)


@pytest.fixture
def raw(flow: Flow) -> Flow:
    flow.register("load: -> raw", "clean: raw -> tidy")
    return flow


def test_old_versions_are_removed_and_the_newest_stay(raw: Flow) -> None:
    folders = [make(raw), *(make_again(raw) for _ in range(3))]
    rehearsal = swept(raw, Retention(versions=2, grace=NOW), dry_run=True)
    assert [folder.version for folder in rehearsal.versions] == [1, 2]
    assert all(folder.is_dir() for folder in folders)
    done = swept(raw, Retention(versions=2, grace=NOW))
    assert [(folder.version, folder.location, folder.bytes) for folder in done.versions] == [
        (1, str(folders[0]), 3),
        (2, str(folders[1]), 3),
    ]
    assert [folder.is_dir() for folder in folders] == [False, False, True, True]
    assert str(done) == (
        "raw: removed 2 old versions (6 bytes) and 0 failed attempts; kept 0 unknown folders; problems: 0"
    )
    assert swept(raw, Retention(versions=2, grace=NOW)).versions == ()


def test_the_old_versions_of_20000_chunks_are_found_in_one_query(raw: Flow) -> None:
    raw.type(
        "insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location)"
        " select 'raw', dataid, version, 'load', format('/raw/%%s/%%s', dataid, version)"
        " from generate_series(1, 20000) as dataid, generate_series(1, 2) as version"
    )
    with raw.ledger.transaction(actor="test") as transaction:
        sweeps.mark_expired(transaction, DatasetId("raw"), STRICT, "test")
        assert len(sweeps.marked_versions(transaction, DatasetId("raw"))) == 20_000


def test_retention_time_starts_when_a_version_is_replaced(raw: Flow) -> None:
    folders = [make(raw), make_again(raw), make_again(raw)]
    assert swept(raw, Retention(time=timedelta(hours=1), grace=NOW)).versions == ()
    assert swept(raw, Retention(versions=1, time=timedelta(hours=1), grace=NOW)).versions == ()
    assert swept(raw, Retention(versions=1)).versions == ()  # a reader without a claim has an hour
    assert swept(raw, Retention(grace=NOW)).versions == ()  # no limits: all stay
    assert len(swept(raw, Retention(time=NOW, grace=NOW)).versions) == 2
    assert [folder.is_dir() for folder in folders] == [False, False, True]


def test_the_current_version_stays_while_the_chunk_runs_again_or_has_failed(raw: Flow) -> None:
    current = make(raw)
    resubmit(raw.ledger, [key(f"raw/{DATAID}")], by="test")
    taken = claim(raw.ledger, "load", DATAID)
    swept(raw)
    assert current.is_dir()
    fail(raw.ledger, taken, "no luck")
    swept(raw)
    assert current.is_dir()


def test_a_version_that_a_live_claim_reads_stays_until_it_ends(raw: Flow) -> None:
    old = make(raw)
    reader = claim(raw.ledger, "clean", DATAID)
    assert [manifest.location for manifest in reader.manifests] == [str(old)]
    make_again(raw)
    assert swept(raw).versions == ()
    assert old.is_dir()
    fail(raw.ledger, reader, "done with it")
    assert [folder.location for folder in swept(raw).versions] == [str(old)]


def test_a_version_in_use_stays_even_if_another_chunk_of_the_job_reads_a_newer_one(raw: Flow) -> None:
    _, report = raw.register("load: -> raw", job("report: raw -> pages", raw=ListedChunks(lambda _: [DATAID])))
    old = make(raw)
    raw.plan(report, ["1", "2"])
    reader = claim(raw.ledger, "report", "1")
    make_again(raw)
    claim(raw.ledger, "report", "2")
    assert swept(raw).versions == ()
    assert old.is_dir()
    fail(raw.ledger, reader, "done with it")
    assert [folder.location for folder in swept(raw).versions] == [str(old)]


def test_a_failed_attempt_is_removed_after_its_retention_and_a_live_one_never(raw: Flow) -> None:
    taken = claim(raw.ledger, "load", DATAID)
    folder = write(raw, taken)
    assert swept(raw).orphans == ()
    assert folder.is_dir()
    fail(raw.ledger, taken, "no luck")
    assert swept(raw, Retention(failed=timedelta(days=7))).orphans == ()
    assert [folder.location for folder in swept(raw, dry_run=True).orphans] == [str(folder)]
    assert folder.is_dir()
    (gone,) = swept(raw).orphans
    assert (str(gone.chunk), gone.why) == (f"raw/{DATAID}", f"claim {taken.claim_id} ended without a version")
    assert not folder.exists()


def test_an_attempt_with_an_expired_lease_is_not_swept_before_it_is_healed(raw: Flow) -> None:
    taken = claim(raw.ledger, "load", DATAID)
    folder = write(raw, taken)
    raw.type("update dataflow.datastatus set lease_until = now() - interval '1 day' where claim_id is not null")
    swept(raw)
    assert folder.is_dir()


def test_unknown_folders_stay_and_are_reported(raw: Flow) -> None:
    taken = claim(raw.ledger, "load", DATAID)
    fail(raw.ledger, taken, "no luck")
    root = raw.root / "raw"
    other_ledger = root / "2024-01-01" / str(taken.claim_id)  # the same number, given for another chunk
    never_given = root / "2024-01-01" / "999999"
    not_ours = [root / "notes" / "readme", root / "2024-01-01" / "_temporary", root / "%zz" / "x1"]
    for folder in (other_ledger, never_given, *not_ours):
        folder.mkdir(parents=True)
    found = swept(raw)
    assert {folder.location for folder in found.unknown} == {str(other_ledger), str(never_given)}
    assert all(folder.is_dir() for folder in (other_ledger, never_given, *not_ours))
    assert found.orphans == ()


def test_a_published_version_is_never_an_orphan(raw: Flow) -> None:
    folders = [make(raw, f"d{number}") for number in range(3)]
    assert swept(raw, Retention(failed=NOW, grace=NOW)).orphans == ()
    assert all(folder.is_dir() for folder in folders)


def test_a_sweep_that_died_is_finished_by_the_next(raw: Flow) -> None:
    old, new = make(raw), make_again(raw)
    with raw.ledger.transaction() as transaction:
        sweeps.mark_expired(transaction, DatasetId("raw"), STRICT, "who dies here")
    assert old.is_dir()
    assert [folder.location for folder in swept(raw, Retention()).versions] == [str(old)]
    assert (old.exists(), new.is_dir()) == (False, True)


def test_a_version_after_a_rollback_to_it_keeps_its_files(raw: Flow) -> None:
    first, second = make(raw), make_again(raw)
    assert rollback(raw.ledger, key(f"raw/{DATAID}"), 1, by="test") == 3
    assert [folder.version for folder in swept(raw).versions] == [2]
    assert (first.is_dir(), second.exists()) == (True, False)
    # Versions 1 and 3 share their files; now that neither is current, both are removed.
    make_again(raw)
    assert [folder.version for folder in swept(raw).versions] == [1, 3]
    assert not first.exists()


def test_a_rollback_to_a_swept_version_is_refused(raw: Flow) -> None:
    make(raw)
    make_again(raw)
    with raw.ledger.transaction() as transaction:
        sweeps.mark_expired(transaction, DatasetId("raw"), STRICT, "a moment ago")
    with pytest.raises(OpenDataFlowError, match=r"were swept.*choose a newer version"):
        rollback(raw.ledger, key(f"raw/{DATAID}"), 1, by="test")


def test_a_current_version_stays_even_if_sql_marked_it_as_swept(raw: Flow) -> None:
    current = make(raw)
    raw.type("insert into dataflow.version_sweep (manifest_id) select manifest_id from dataflow.data_manifest")
    assert swept(raw).versions == ()
    assert current.is_dir()


def test_files_outside_the_root_are_not_touched(raw: Flow) -> None:
    elsewhere = raw.root / "raw" / "imported"
    elsewhere.mkdir(parents=True)
    publish(raw.ledger, claim(raw.ledger, "load", DATAID), NewManifest(location=str(elsewhere)))
    make_again(raw)
    found = swept(raw)
    assert (found.versions, [folder.location for folder in found.problems]) == ((), [str(elsewhere)])
    assert elsewhere.is_dir()


def test_a_dataset_that_cannot_be_swept_is_named(flow: Flow) -> None:
    flow.register("load: -> raw")
    flow.type("insert into dataflow.dataset (datasetid) values ('theirs')")
    with pytest.raises(UnknownName, match="nosuch"):
        sweep(flow.ledger, "nosuch", STRICT, by="test")
    with pytest.raises(InvalidInput, match="theirs has no location"):
        sweep(flow.ledger, "theirs", STRICT, by="test")
    assert swept(flow).versions == ()  # a root that is not there yet
    with pytest.raises(InvalidDefinition, match="keep 1 or more"):
        Retention(versions=0)
