"""The verbs in the order a chunk meets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.errors import ClaimLost, NoGo, UnknownName
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.model.problems import Question
from opendataflow_dagster.model.verdict import Code
from opendataflow_dagster.protocol.claim import claim, claim_many, claim_next
from opendataflow_dagster.protocol.gate import gate
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, skip, unhold
from opendataflow_dagster.protocol.publish import StagedClaim, publish, publish_many
from opendataflow_dagster.protocol.release import abandon, fail
from opendataflow_dagster.protocol.renew import renew
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.factories import Flow, key


def test_a_chunk_goes_from_planned_to_ready_and_wakes_its_consumer(flow: Flow) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["2024-01-01"])
    assert flow.status("raw/2024-01-01") == "PENDING"
    assert flow.runnable() == [("load", "2024-01-01")]

    (taken,) = claim_next(flow.ledger, "load")
    assert flow.status("raw/2024-01-01") == "RUNNING"
    assert flow.runnable() == []
    assert taken.attempt == 1

    flow.publish(taken)
    assert flow.status("raw/2024-01-01") == "READY"
    assert flow.chunk("raw/2024-01-01").version == 1
    assert flow.runnable() == [("clean", "2024-01-01")]

    (consumer,) = claim_next(flow.ledger, "clean")
    assert [str(one) for one in consumer.inputs] == ["raw/2024-01-01 version 1"]
    assert consumer.manifests[0].files[0].path == "part-0"
    assert flow.in_rows() == [("raw", "clean", "2024-01-01")]
    flow.publish(consumer)
    assert flow.in_rows() == []
    assert claim_next(flow.ledger, "clean") == []


def test_every_claim_has_five_stored_yes_answers(flow: Flow) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    taken = claim(flow.ledger, "clean", "1")
    row = flow.psql.execute(
        "select problems, code, inputs from dataflow.verdict where claim_id = %s", (taken.claim_id,)
    ).fetchone()
    assert row is not None
    assert row[:2] == ([], None)
    assert row[2] == [{"datasetid": "raw", "dataid": "1", "manifest_id": taken.inputs[0].manifest_id, "version": 1}]
    assert [answer.yes for answer in taken.verdict.answers] == [True] * 5


def test_a_claim_by_name_of_a_chunk_whose_input_is_not_ready_says_so_with_all_five_answers(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, "clean", "1")
    verdict = refused.value.verdict
    assert verdict.code is Code.DATA_NOT_READY
    assert [answer.question for answer in verdict.answers] == list(Question)
    assert "raw/1 does not exist" in str(refused.value)
    assert flow.status("tidy/1") == "ABSENT"


def test_a_failed_chunk_waits_for_a_person_and_does_not_hold_back_the_later_ones(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1", "2"])
    (first,) = claim_next(flow.ledger, "load")
    fail(flow.ledger, first, "disk full")
    assert flow.chunk("raw/1").reason == "disk full"
    heal(flow.ledger)
    assert flow.status("raw/1") == "FAILED"
    (second,) = claim_next(flow.ledger, "load")
    assert second.dataid == "2"
    resubmit(flow.ledger, [key("raw/1")], by="ada", reason="disk is empty again")
    assert claim_next(flow.ledger, "load")[0].dataid == "1"


def test_the_second_claim_of_a_chunk_says_locked(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    claim(flow.ledger, "load", "1")
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, "load", "1")
    assert refused.value.verdict.code is Code.LOCKED
    assert "RUNNING (job load" in str(refused.value)


def test_many_names_get_their_claims_and_the_refused_their_verdicts(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1", "2", "3"])
    claim(flow.ledger, "load", "2")
    found = claim_many(flow.ledger, "load", ["1", "2", "3"])
    assert [one.dataid for one in found.claims] == ["1", "3"]
    assert [(one.dataid, one.code) for one in found.refused] == [("2", Code.LOCKED)]


def test_renewing_moves_the_lease(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    taken = claim(flow.ledger, "load", "1")
    (renewed,) = renew(flow.ledger, [taken])
    assert renewed.lease_until > taken.lease_until
    assert flow.chunk("raw/1").lease_until == renewed.lease_until


ACTS_OF_A_HOLDER: dict[str, Callable[[Flow, Claim], object]] = {
    "publish": lambda flow, mine: flow.publish(mine),
    "renew": lambda flow, mine: renew(flow.ledger, [mine]),
    "fail": lambda flow, mine: fail(flow.ledger, mine, "disk full"),
    "abandon": lambda flow, mine: abandon(flow.ledger, [mine], "cancelled"),
}


@pytest.mark.parametrize("act", ACTS_OF_A_HOLDER)
@pytest.mark.parametrize("lost_by", ["a lease that ran out", "a typed RESUBMIT"])
def test_a_writer_that_lost_its_claim_does_nothing_to_the_newer_one(flow: Flow, lost_by: str, act: str) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    flow.produce("load", "1")
    stale = claim(flow.ledger, "clean", "1")
    if lost_by == "a typed RESUBMIT":
        flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'tidy'")
    else:
        flow.type("update dataflow.datastatus set lease_until = now() - interval '1 s' where datasetid = 'tidy'")
        assert heal(flow.ledger).resubmitted == (key("tidy/1"),)
    newer = claim(flow.ledger, "clean", "1")
    rows = "select to_jsonb(s)::text from dataflow.datastatus s order by 1"
    before = flow.psql.execute(rows).fetchall()
    with pytest.raises(ClaimLost, match=f"claim {stale.claim_id}"):
        ACTS_OF_A_HOLDER[act](flow, stale)
    assert flow.psql.execute(rows).fetchall() == before
    flow.publish(newer)
    assert (flow.chunk("tidy/1").status, flow.chunk("tidy/1").version) == ("READY", 1)


@pytest.mark.parametrize(
    ("before", "after"), [("load: -> raw", "load: -> raw, extra"), ("load: -> raw, extra", "load: -> raw")]
)
def test_a_chunk_is_published_as_it_was_claimed_although_the_outputs_of_its_job_changed_meanwhile(
    flow: Flow, before: str, after: str
) -> None:
    flow.register(before)
    taken = claim(flow.ledger, "load", "1")
    flow.register(after)
    flow.publish(taken)
    assert {flow.status(f"{one}/1") for one in taken.outputs} == {"READY"}


def test_of_many_manifests_the_good_are_published_and_the_others_come_back_with_what_is_wrong(flow: Flow) -> None:
    flow.register("load: -> raw")
    first, second, third = claim_many(flow.ledger, "load", ["1", "2", "3"]).claims
    flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = '3'")
    made = [StagedClaim(claim=one, manifests={DatasetId("raw"): flow.manifest(one)}) for one in (first, second, third)]
    made[1] = replace(made[1], manifests={DatasetId("raw"): NewManifest(location="/outside")})
    published = publish_many(flow.ledger, [*made, made[0]])
    assert [one.claim_id for one in published.versions] == [first.claim_id], "the one that was given twice, once"
    assert published.lost == (third,)
    assert [one.claim for one in published.misfits] == [second]
    assert "raw/2: /outside is outside its root" in str(published.misfits[0].error)
    assert flow.status("raw/2") == "RUNNING", "it can be published yet"


def test_an_abandoned_chunk_runs_again_up_to_the_attempt_cap(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    for attempt in (1, 2, 3):
        (taken,) = claim_next(flow.ledger, "load")
        assert taken.attempt == attempt
        abandon(flow.ledger, [taken], "the run was cancelled")
        assert flow.status("raw/1") == ("RESUBMIT" if attempt < 3 else "FAILED")
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    assert flow.chunk("raw/1").retries == 0, "a person's resubmit counts anew"


def test_hold_refuses_everyone_and_unhold_gives_the_status_back(flow: Flow) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1", "2"])
    flow.produce("load", "1")
    hold(flow.ledger, [key("raw/1"), key("raw/2"), key("tidy/1")], by="ada", reason="audit")
    assert flow.runnable() == []
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, "load", "2")
    assert refused.value.verdict.code is Code.LOCKED
    unhold(flow.ledger, [key("raw/1"), key("raw/2"), key("tidy/1")], by="ada")
    assert [flow.status(one) for one in ("raw/1", "raw/2", "tidy/1")] == ["READY", "PENDING", "PENDING"]
    assert flow.chunk("raw/1").version == 1
    assert flow.runnable() == [("clean", "1"), ("load", "2")]


def test_holding_a_running_chunk_takes_it_from_its_holder(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    taken = claim(flow.ledger, "load", "1")
    hold(flow.ledger, [key("raw/1")], by="ada")
    with pytest.raises(ClaimLost):
        publish(flow.ledger, taken, flow.manifest(taken))
    unhold(flow.ledger, [key("raw/1")], by="ada")
    assert flow.status("raw/1") == "RESUBMIT"


def test_a_skipped_chunk_is_not_produced_and_its_consumers_wait(flow: Flow) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1"])
    skip(flow.ledger, [key("raw/1")], by="ada", reason="a holiday")
    assert flow.runnable() == []
    (verdict,) = gate(flow.ledger, "clean", ["1"])
    assert verdict.code is Code.DATA_NOT_READY


def test_an_unknown_job_is_named(flow: Flow) -> None:
    for call in (
        lambda: claim_next(flow.ledger, "nobody"),
        lambda: claim(flow.ledger, "nobody", "1"),
        lambda: gate(flow.ledger, "nobody", ["1"]),
    ):
        with pytest.raises(UnknownName, match="job nobody is not registered"):
            call()
