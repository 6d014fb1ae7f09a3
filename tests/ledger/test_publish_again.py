"""A publish may be repeated when its answer was lost: the same files are a success, other files are an error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opendataflow_dagster.engine.foreign_scheduler import begin_scheduled_run, end_scheduled_run
from opendataflow_dagster.model.errors import ClaimLost, InvalidManifest
from opendataflow_dagster.model.manifest import CheckResult, File, NewManifest
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import StagedClaim, publish, publish_many
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.factories import Flow, key


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    emptied_flow.register("load: -> raw", "split: -> left, right")
    return emptied_flow


def described(flow: Flow, claim_id: int) -> NewManifest:
    folder = flow.root / "raw" / str(claim_id)
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / name).write_text("xyz")
    return NewManifest(
        location=str(folder),
        files=(File(path="a", size=3, digest="1"), File(path="b", size=3)),
        row_count=2,
        schema_hash="s",
        content_digest="c",
        checks=(CheckResult(name="rows", passed=True, detail="2 rows"),),
    )


def test_the_same_publish_again_is_a_success(flow: Flow) -> None:
    taken = claim(flow.ledger, "load", "1")
    manifest = described(flow, taken.claim_id)
    first = publish(flow.ledger, taken, manifest)
    assert publish(flow.ledger, taken, replace(manifest, location=f"{manifest.location}/")) == first


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"files": (File(path="a", size=3, digest="1"),)}, "files"),
        ({"files": (File(path="a", size=3, digest="2"), File(path="b", size=3))}, "files"),
        ({"row_count": 3, "schema_hash": "t"}, "row_count, schema_hash"),
        ({"content_digest": None}, "content_digest"),
        ({"checks": ()}, "checks"),
    ],
)
def test_a_repeated_publish_with_other_files_is_an_error(flow: Flow, changes: dict[str, object], named: str) -> None:
    taken = claim(flow.ledger, "load", "1")
    manifest = described(flow, taken.claim_id)
    publish(flow.ledger, taken, manifest)
    other = replace(manifest, **changes)  # type: ignore[arg-type]
    with pytest.raises(InvalidManifest, match=rf"raw/1: claim \d+ published .* with another {named}; resubmit"):
        publish(flow.ledger, taken, other)


def test_a_repeated_publish_from_another_folder_is_an_error(flow: Flow) -> None:
    taken = claim(flow.ledger, "load", "1")
    publish(flow.ledger, taken, described(flow, taken.claim_id))
    other = described(flow, 99999)
    with pytest.raises(InvalidManifest, match="another location"):
        publish(flow.ledger, taken, other)
    assert flow.chunk("raw/1").version == 1


def test_one_output_with_other_files_fails_the_whole_repetition(flow: Flow) -> None:
    taken = claim(flow.ledger, "split", "1")
    made = {output: flow.manifest(taken, output) for output in taken.outputs}
    publish(flow.ledger, taken, made)
    made["right"] = replace(made["right"], row_count=7)  # type: ignore[index]
    published = publish_many(flow.ledger, [StagedClaim(claim=taken, manifests=made)])
    assert (published.versions, published.lost) == ((), ())
    assert "right/1" in str(published.misfits[0].error)


def test_a_claim_given_twice_with_different_files_is_not_published(flow: Flow) -> None:
    taken = claim(flow.ledger, "split", "1")
    made = {output: flow.manifest(taken, output) for output in taken.outputs}
    same = StagedClaim(claim=taken, manifests=made)
    other = StagedClaim(claim=taken, manifests={**made, taken.outputs[1]: replace(made[taken.outputs[1]], row_count=7)})
    published = publish_many(flow.ledger, [same, other])
    assert (published.versions, published.lost) == ((), ())
    assert "split/1 was given twice, with different manifests" in str(published.misfits[0].error)
    renewed = StagedClaim(claim=replace(taken, lease_until=taken.lease_until + taken.lease), manifests=made)
    assert len(publish_many(flow.ledger, [same, renewed]).versions) == 2


def test_a_claim_that_was_lost_and_never_published_stays_lost(flow: Flow) -> None:
    taken = claim(flow.ledger, "load", "1")
    resubmit(flow.ledger, [key("raw/1")], by="test")
    with pytest.raises(ClaimLost):
        publish(flow.ledger, taken, described(flow, taken.claim_id))


def test_a_run_of_another_scheduler_that_is_ended_again_names_the_same_folder(flow: Flow) -> None:
    run = begin_scheduled_run(flow.ledger, "load", "1")
    assert run is not None
    folder = flow.root / "raw" / "1"
    for place in (folder, flow.root / "raw" / "2"):
        place.mkdir(parents=True)
        (place / "a").write_text("xyz")
    first = end_scheduled_run(flow.ledger, run.run_id, {"raw": str(folder)})
    # As if the process had died between publishing and ending the run.
    flow.type("update dataflow.job_run set ended = null, outcome = null where run_id = %s", run.run_id)
    with pytest.raises(InvalidManifest, match=r"raw/1.*published version 1.*another location"):
        end_scheduled_run(flow.ledger, run.run_id, {"raw": str(flow.root / "raw" / "2")})
    assert end_scheduled_run(flow.ledger, run.run_id, {"raw": f"{folder}/"}).versions == first.versions
