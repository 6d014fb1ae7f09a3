"""A symlink never leads a reader, a publisher or a sweep out of the root of a DataSet."""

from __future__ import annotations

from pathlib import Path

import pytest

from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import InvalidManifest, NoGo
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.protocol.announce import announce
from opendataflow_dagster.protocol.claim import claim, claim_next
from opendataflow_dagster.protocol.gate import gate
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.rollback import rollback
from tests.factories import Flow, key

FILES = (File(path="deep/part-0", size=3), File(path="part-1", size=3))
#: What is replaced by a symlink to the same files outside, relative to the root.
LINKS = ["1", "1/v", "1/v/deep", "1/v/part-1"]


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    emptied_flow.register("load: -> raw", "clean: raw -> tidy")
    return emptied_flow


def write(folder: Path) -> NewManifest:
    for file in FILES:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).write_text("xyz")
    return NewManifest(location=str(folder), files=FILES)


def lead_out(flow: Flow, link: str) -> None:
    inside = flow.root / "raw" / link
    outside = flow.root / "outside" / link
    outside.parent.mkdir(parents=True)
    inside.rename(outside)
    inside.symlink_to(outside)


def written(flow: Flow) -> tuple[Claim, NewManifest]:
    return claim(flow.ledger, "load", "1"), write(flow.root / "raw" / "1" / "v")


@pytest.mark.parametrize("link", LINKS)
def test_a_location_that_leads_out_of_its_root_is_not_published(flow: Flow, link: str) -> None:
    taken, manifest = written(flow)
    lead_out(flow, link)
    with pytest.raises(
        InvalidManifest, match=r"raw/1: .* leads out of its root .*raw through a symlink; write it again"
    ):
        publish(flow.ledger, taken, manifest)


@pytest.mark.parametrize("link", LINKS)
def test_a_location_that_leads_out_of_its_root_is_not_read(flow: Flow, link: str) -> None:
    publish(flow.ledger, *written(flow))
    lead_out(flow, link)
    (verdict,) = gate(flow.ledger, "clean", ["1"])
    assert (verdict.code, "through a symlink" in str(verdict)) == ("INVALID_PATH", True)
    with pytest.raises(NoGo, match="through a symlink"):
        claim(flow.ledger, "clean", "1")
    assert claim_next(flow.ledger, "clean", 1) == []


def test_a_version_that_leads_out_of_its_root_is_not_rolled_back_to(flow: Flow) -> None:
    publish(flow.ledger, *written(flow))
    resubmit(flow.ledger, [key("raw/1")], by="test")
    flow.produce("load", "1")
    lead_out(flow, "1/v")
    with pytest.raises(InvalidManifest, match="through a symlink"):
        rollback(flow.ledger, key("raw/1"), 1, by="test")


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}"])
@pytest.mark.parametrize("files", [FILES, ()])
def test_files_that_lead_out_of_their_root_are_not_announced(
    flow: Flow, spelling: str, files: tuple[File, ...]
) -> None:
    register(flow.ledger, [Dataset(datasetid=DatasetId("theirs"), location=spelling.format(flow.root / "theirs"))])
    write(flow.root / "outside")
    (flow.root / "theirs").mkdir()
    (flow.root / "theirs" / "1").symlink_to(flow.root / "outside")
    manifest = NewManifest(location=spelling.format(flow.root / "theirs" / "1"), files=files)
    with pytest.raises(InvalidManifest, match="through a symlink"):
        announce(flow.ledger, "theirs", ["1"], by="test", manifests={key("theirs/1").dataid: manifest})


def test_a_root_may_itself_be_reached_through_a_symlink(flow: Flow) -> None:
    (flow.root / "disk").mkdir()
    (flow.root / "raw").symlink_to(flow.root / "disk")
    publish(flow.ledger, *written(flow))
    assert claim(flow.ledger, "clean", "1").manifests[0].location == str(flow.root / "raw" / "1" / "v")


def test_a_loop_of_symlinks_is_not_announced(flow: Flow) -> None:
    register(flow.ledger, [Dataset(datasetid=DatasetId("theirs"), location=str(flow.root / "theirs"))])
    (flow.root / "theirs").mkdir()
    (flow.root / "theirs" / "1").symlink_to(flow.root / "theirs" / "1")
    for files in (FILES, ()):
        manifest = NewManifest(location=str(flow.root / "theirs" / "1"), files=files)
        manifests = {key("theirs/1").dataid: manifest}
        if files:
            with pytest.raises(InvalidManifest, match="cannot be listed"):
                announce(flow.ledger, "theirs", ["1"], by="test", manifests=manifests)
        else:
            announce(flow.ledger, "theirs", ["1"], by="test", manifests=manifests)


def test_a_symlink_that_stays_below_the_root_is_accepted(flow: Flow) -> None:
    taken, manifest = written(flow)
    part = flow.root / "raw" / "1" / "v" / "part-1"
    part.rename(part.parent.parent / "kept")
    part.symlink_to(part.parent.parent / "kept")
    publish(flow.ledger, taken, manifest)
    assert claim(flow.ledger, "clean", "1").manifests[0].files == FILES
