"""Stale chunks: marked in the transaction that gives an input another version, over chains, and exactly they."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from opendataflow_dagster.ledger.claims import publish
from opendataflow_dagster.ledger.staleness import stale_chunks
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import NoGo
from opendataflow_dagster.model.ids import DataId, DatasetId
from opendataflow_dagster.model.job import ALL, ListedChunks, Policy
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.protocol.announce import announce
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.force import force
from opendataflow_dagster.protocol.heal import REBUILT_UNASKED, heal
from opendataflow_dagster.protocol.hold import hold, skip, unhold
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.rollback import rollback
from tests.factories import Flow, job, key
from tests.invariants import assert_invariants

CHAIN = ("load: -> raw", "clean: raw -> tidy", "total: tidy -> sums", "print: sums -> pages")


def stale(flow: Flow) -> dict[str, str]:
    """Each stale chunk with its cause; one that is stale only through the input is in brackets."""
    assert_invariants(flow.psql)
    found = flow.psql.execute(
        "select datasetid || '/' || dataid, is_direct, input_datasetid || '/' || input_dataid from dataflow.stale"
    )
    return {str(chunk): str(cause) if is_direct else f"({cause})" for chunk, is_direct, cause in found}


def made_chain(flow: Flow, *dataids: str) -> None:
    flow.register(*CHAIN)
    for dataid in dataids:
        for jobid in ("load", "clean", "total", "print"):
            flow.produce(jobid, dataid)


def remake(flow: Flow, *chunks: str) -> None:
    """Resubmit and make again."""
    producers = {"raw": "load", "tidy": "clean", "sums": "total", "pages": "print"}
    for chunk in map(key, chunks):
        resubmit(flow.ledger, [chunk], by="ada")
        flow.produce(producers[chunk.datasetid], chunk.dataid)


def test_a_new_version_marks_what_was_made_from_the_old_one_down_the_chain(flow: Flow) -> None:
    made_chain(flow, "1", "2")
    assert stale(flow) == {}
    remake(flow, "raw/1")
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "(tidy/1)", "pages/1": "(sums/1)"}
    remake(flow, "tidy/1")
    assert stale(flow) == {"sums/1": "tidy/1", "pages/1": "(sums/1)"}
    remake(flow, "sums/1", "pages/1")
    assert stale(flow) == {}


def test_a_resubmitted_chunk_is_stale_until_its_new_version_is_published(flow: Flow) -> None:
    made_chain(flow, "1")
    remake(flow, "raw/1")
    before = stale(flow)
    resubmit(flow.ledger, [key("tidy/1")], by="ada")
    taken = claim(flow.ledger, "clean", "1")
    assert stale(flow) == before
    flow.publish(taken)
    assert stale(flow) == {"sums/1": "tidy/1", "pages/1": "(sums/1)"}


def test_a_mark_names_the_person_and_the_time_of_the_first_cause(flow: Flow) -> None:
    made_chain(flow, "1")
    began = datetime.now(UTC)
    rollback(flow.ledger, key("raw/1"), 1, by="ada")
    ended = datetime.now(UTC)
    remake(flow, "raw/1")
    found = flow.psql.execute("select datasetid, since, by from dataflow.stale order by 1").fetchall()
    assert [(name, by) for name, _, by in found] == [("pages", "ada"), ("sums", "ada"), ("tidy", "ada")]
    assert all(began <= since <= ended for _, since, _ in found)


def test_a_chunk_made_while_its_input_is_stale_is_stale(flow: Flow) -> None:
    made_chain(flow, "1")
    remake(flow, "raw/1")
    remake(flow, "pages/1")  # sums/1 is stale through tidy/1 alone, which blocks nobody
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "(tidy/1)", "pages/1": "(sums/1)"}


def test_a_direct_cause_blocks_consumers_and_one_through_a_chain_does_not(flow: Flow) -> None:
    made_chain(flow, "1")
    remake(flow, "raw/1")
    resubmit(flow.ledger, [key("sums/1"), key("pages/1")], by="ada")
    with pytest.raises(NoGo, match="tidy/1 is stale: it was made from version 1 of raw/1, but version 2 is current"):
        claim(flow.ledger, "total", "1")
    resubmit(flow.ledger, [key("tidy/1")], by="ada")
    for jobid in ("clean", "total", "print"):
        flow.produce(jobid, "1")
    assert stale(flow) == {}


def test_a_chunk_of_many_inputs_is_stale_until_all_of_them_are_the_ones_it_used(flow: Flow) -> None:
    (_, total) = flow.register("load: -> raw", job("total: raw -> sums", raw=ALL))
    dataids = [str(number) for number in range(20)]
    for dataid in dataids:
        flow.produce("load", dataid)
    flow.plan(total, ["all"])
    flow.produce("total", "all")
    flow.produce("load", "new")  # it did not exist then, so it is no newer version
    assert stale(flow) == {}
    remake(flow, "raw/3", "raw/7")
    assert stale(flow) == {"sums/all": "raw/3"}
    resubmit(flow.ledger, [key("sums/all")], by="ada")
    flow.produce("total", "all")
    assert stale(flow) == {}


def test_a_rollback_marks_consumers_and_the_chunk_itself_if_its_inputs_have_moved_on(flow: Flow) -> None:
    made_chain(flow, "1")
    remake(flow, "raw/1", "tidy/1", "sums/1", "pages/1")
    assert stale(flow) == {}
    rollback(flow.ledger, key("tidy/1"), 1, by="ada")
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "tidy/1", "pages/1": "(sums/1)"}


def test_announced_and_foreign_versions_mark_consumers(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", "total: tidy -> sums", raw=Dataset(datasetid=DatasetId("raw")))
    for version in (1, 2):
        new = NewManifest(location=f"{flow.root}/raw/1-{version}", content_digest=f"content {version}")
        announce(flow.ledger, "raw", [DataId("1")], by="ada", manifests={DataId("1"): new})
        if version == 1:
            flow.produce("clean", "1")
            flow.produce("total", "1")
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "(tidy/1)"}
    resubmit(flow.ledger, [key("tidy/1")], by="ada")
    flow.produce("clean", "1")
    assert stale(flow) == {"sums/1": "tidy/1"}
    flow.type("update dataflow.datastatus set status = 'RUNNING' where datasetid = 'raw' and locktype = 'OUT'")
    flow.type("update dataflow.datastatus set status = 'READY' where datasetid = 'raw' and locktype = 'OUT'")
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "tidy/1"}


def test_a_hold_changes_no_mark_and_a_deleted_chunk_has_none(flow: Flow) -> None:
    made_chain(flow, "1")
    remake(flow, "raw/1")
    marked = stale(flow)
    hold(flow.ledger, [key("tidy/1")], by="ada")
    assert stale(flow) == marked
    unhold(flow.ledger, [key("tidy/1")], by="ada")
    assert stale(flow) == marked
    flow.type("delete from dataflow.datastatus where datasetid = 'raw' and locktype = 'OUT'")
    assert stale(flow) == {}, "an input that is gone is not another version"
    flow.produce("load", "1")
    assert stale(flow) == marked
    flow.type("delete from dataflow.datastatus where datasetid = 'tidy' and locktype = 'OUT'")
    assert stale(flow) == {}


def test_a_skipped_input_marks_what_was_made_from_its_version_only_when_that_changes(flow: Flow) -> None:
    made_chain(flow, "1")
    skip(flow.ledger, [key("raw/1")], by="ada")
    assert stale(flow) == {}
    remake(flow, "raw/1")
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "(tidy/1)", "pages/1": "(sums/1)"}


def test_an_input_that_the_job_no_longer_reads_does_not_count(flow: Flow) -> None:
    made_chain(flow, "1")
    flow.register("look: -> codes")
    flow.produce("look", "1")
    remake(flow, "raw/1")
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "(tidy/1)", "pages/1": "(sums/1)"}
    flow.register("clean: codes -> tidy")
    assert stale(flow) == {}
    remake(flow, "raw/1")
    assert stale(flow) == {}
    flow.register("clean: raw -> tidy")
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "(tidy/1)", "pages/1": "(sums/1)"}
    flow.type("delete from dataflow.job where jobid = 'clean'")
    assert stale(flow) == {}


def test_a_chunk_planned_with_other_inputs_is_judged_by_those(flow: Flow) -> None:
    lists = {"a": ["1", "2"]}
    load, days = flow.register(
        "load: -> raw", job("days: raw -> dates", raw=ListedChunks(lambda dataid: lists[dataid]))
    )
    flow.plan(load, ["1", "2"])
    flow.produce("load", "1")
    flow.produce("load", "2")
    flow.plan(days, ["a"])
    flow.produce("days", "a")
    remake(flow, "raw/2")
    assert stale(flow) == {"dates/a": "raw/2"}
    lists["a"] = ["1"]
    flow.plan(days, ["a"])
    assert stale(flow) == {}
    lists["a"] = ["1", "2"]
    flow.plan(days, ["a"])
    assert stale(flow) == {"dates/a": "raw/2"}


def test_a_forced_chunk_published_after_its_input_changed_is_stale(flow: Flow) -> None:
    made_chain(flow, "1")
    forced = force(flow.ledger, "clean", "1", by="ada")
    remake(flow, "raw/1")
    flow.publish(forced)
    assert stale(flow) == {"tidy/1": "raw/1", "sums/1": "tidy/1", "pages/1": "(sums/1)"}


def test_one_of_ten_thousand_source_chunks_marks_its_descendants_in_the_transaction_that_publishes(flow: Flow) -> None:
    """The chunks are inserted as they would have been published, without firing triggers."""
    made_chain(flow, "made")
    with flow.psql.transaction():
        flow.psql.execute("set local session_replication_role = replica")
        source = None
        for datasetid, jobid in (("raw", "load"), ("tidy", "clean"), ("sums", "total"), ("pages", "print")):
            inputs = "'[]'::jsonb"
            if source is not None:
                inputs = (
                    "(select jsonb_build_array(jsonb_build_object('datasetid', m.datasetid, 'dataid', m.dataid, "
                    "'manifest_id', m.manifest_id, 'version', 1)) from dataflow.data_manifest m "
                    f"where m.datasetid = '{source}' and m.dataid = n::text)"
                )
            flow.type(
                "with made as (insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, inputs)"
                f" select %s, n::text, 1, %s, '/lake/' || n, {inputs} from generate_series(1, 10000) n "
                "returning datasetid, jobid, dataid, manifest_id) "
                "insert into dataflow.datastatus (datasetid, jobid, dataid, locktype, status, manifest_id) "
                "select datasetid, jobid, dataid, 'OUT', 'READY', manifest_id from made",
                datasetid,
                jobid,
            )
            source = datasetid
    flow.type("analyze dataflow.data_manifest, dataflow.datastatus")
    resubmit(flow.ledger, [key("raw/5000")], by="ada")
    taken = claim(flow.ledger, "load", "5000")
    with flow.ledger.transaction() as publishing:
        publish(publishing, [(taken, {DatasetId("raw"): flow.manifest(taken)})])
        inside = [str(chunk.key) for chunk in stale_chunks(publishing)]
        assert flow.psql.execute("select count(*) from dataflow.stale").fetchone() == (0,)
    assert sorted(inside) == ["pages/5000", "sums/5000", "tidy/5000"]


def test_heal_finds_wrong_marks_when_it_rebuilds(flow: Flow) -> None:
    made_chain(flow, "1", "2")
    remake(flow, "raw/1")
    right = stale(flow)
    flow.type("delete from dataflow.stale where datasetid = 'sums'")
    flow.type("update dataflow.stale set dataid = '2' where datasetid = 'tidy'")
    assert heal(flow.ledger, rebuild=True).corrected_marks > 0
    assert stale(flow) == right
    assert heal(flow.ledger, rebuild=True).corrected_marks == 0


def test_more_stale_chunks_than_a_month_of_days_are_left_to_a_person(flow: Flow) -> None:
    flow.register("load: -> raw", job("clean: raw -> tidy", Policy(cascade=True)))
    dataids = [str(number) for number in range(REBUILT_UNASKED + 1)]
    for dataid in dataids:
        flow.produce("load", dataid)
        flow.produce("clean", dataid)
    resubmit(flow.ledger, [key(f"raw/{dataid}") for dataid in dataids], by="ada")
    flow.produce("load", "0")
    # One is stale, and the others will be.
    assert heal(flow.ledger).rebuilt == ()
    for dataid in dataids[1:]:
        flow.produce("load", dataid)
    healed = heal(flow.ledger)
    assert healed.rebuilt == ()
    assert healed.left_stale == ("32 left in tidy (more than 31; odf refresh tidy --dry-run)",)
    remake(flow, "tidy/0")
    assert len(heal(flow.ledger).rebuilt) == REBUILT_UNASKED
