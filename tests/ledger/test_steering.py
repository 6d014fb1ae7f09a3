"""What operators do to Jobs and chunks: throttle, pause, force, announce, roll back, cancel and delete runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from opendataflow_dagster.ledger import chunks, registry
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import (
    ClaimLost,
    ForbiddenTransition,
    InvalidInput,
    InvalidManifest,
    LedgerConflict,
    NoGo,
    UnknownName,
)
from opendataflow_dagster.model.ids import DataId, DatasetId
from opendataflow_dagster.model.job import Policy
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.model.verdict import Code
from opendataflow_dagster.protocol.announce import announce
from opendataflow_dagster.protocol.cancel import cancel
from opendataflow_dagster.protocol.claim import claim, claim_many, claim_next
from opendataflow_dagster.protocol.force import force
from opendataflow_dagster.protocol.gate import gate
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold
from opendataflow_dagster.protocol.job_run import delete_run
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.rollback import rollback
from opendataflow_dagster.protocol.throttle import pause, resume, room, throttle
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, job, key
from tests.invariants import assert_invariants
from tests.ledger.test_questions import date_in, external


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


TEN = [str(number) for number in range(1, 11)]


def loaded(flow: Flow) -> None:
    """Ten PENDING chunks of `load`."""
    (load,) = flow.register("load: -> raw")
    flow.plan(load, TEN)


def test_a_throttled_job_never_exceeds_its_concurrency_limit(flow: Flow) -> None:
    loaded(flow)
    throttle(flow.ledger, "load", 3, by="ada", reason="the disk is slow")
    first = claim_next(flow.ledger, "load", 10)
    assert [claim.dataid for claim in first] == ["1", "2", "3"]
    assert claim_next(flow.ledger, "load", 10) == []
    assert room(flow.ledger, "load").free == 0
    flow.publish(first[0])
    assert [claim.dataid for claim in claim_next(flow.ledger, "load", 10)] == ["4"]


def test_concurrent_claimers_stay_within_the_concurrency_limit(flow: Flow) -> None:
    loaded(flow)
    throttle(flow.ledger, "load", 3, by="ada")
    together = Barrier(6)

    def take(_: int) -> list[Claim]:
        with Ledger(flow.url) as ledger:
            together.wait(PATIENCE_SECONDS)
            return claim_next(ledger, "load", 2)

    with ThreadPoolExecutor(6) as pool:
        taken = [claim for claims in pool.map(take, range(6)) for claim in claims]
    assert len(taken) == 3


def test_a_limit_can_change_while_the_job_runs_and_registration_keeps_it(flow: Flow) -> None:
    loaded(flow)
    throttle(flow.ledger, "load", 1, by="ada")
    assert len(claim_next(flow.ledger, "load", 10)) == 1
    flow.register(job("load: -> raw", Policy(max_attempts=7)))
    assert claim_next(flow.ledger, "load", 10) == []
    throttle(flow.ledger, "load", 4, by="ada")
    assert len(claim_next(flow.ledger, "load", 10)) == 3
    throttle(flow.ledger, "load", None, by="ada")
    assert len(claim_next(flow.ledger, "load", 10)) == 6


def test_claims_by_name_beyond_the_limit_are_locked(flow: Flow) -> None:
    loaded(flow)
    throttle(flow.ledger, "load", 2, by="ada")
    claimed = claim_many(flow.ledger, "load", ["1", "2", "3"])
    assert [claim.dataid for claim in claimed.claims] == ["1", "2"]
    (refused,) = claimed.refused
    assert refused.code is Code.LOCKED
    assert "job load is at its concurrency limit (2 running); retry later, or raise the limit" in str(refused)


def test_a_paused_job_claims_nothing_until_resumed_and_says_why(flow: Flow) -> None:
    loaded(flow)
    running = claim(flow.ledger, "load", "1")
    pause(flow.ledger, "load", by="ada", reason="the source is being repaired")
    assert claim_next(flow.ledger, "load", 10) == []
    with pytest.raises(
        NoGo, match=r"LOCKED: job load has been paused since .* \(the source is being repaired\); resume it"
    ):
        claim(flow.ledger, "load", "2")
    assert [verdict.code for verdict in gate(flow.ledger, "load", ["2"])] == [Code.LOCKED]
    flow.publish(running)  # a running chunk is not affected
    assert resume(flow.ledger, "load", by="ada")
    assert len(claim_next(flow.ledger, "load", 10)) == 9


def test_every_change_of_a_limit_is_recorded_with_name_and_reason(flow: Flow) -> None:
    loaded(flow)
    assert throttle(flow.ledger, "load", 2, by="ada", reason="slow disk")
    assert not throttle(flow.ledger, "load", 2, by="ada", reason="slow disk")
    assert pause(flow.ledger, "load", by="bob", reason="repair")
    assert not pause(flow.ledger, "load", by="bob")
    assert resume(flow.ledger, "load", by="bob")
    flow.type("update dataflow.job_control set concurrency = 5 where jobid = 'load'")
    found = flow.psql.execute(
        "select actor, concurrency, paused is not null, reason from dataflow.job_event order by event_id"
    ).fetchall()
    assert found == [
        ("ada", 2, False, "slow disk"),
        ("bob", 2, True, "repair"),
        ("bob", 2, False, None),
        (None, 5, False, None),
    ]


@pytest.mark.parametrize("limit", [-1, 1_000_001])
def test_an_impossible_limit_is_refused(flow: Flow, limit: int) -> None:
    loaded(flow)
    with pytest.raises(InvalidInput, match="give 0 to 1,000,000"):
        throttle(flow.ledger, "load", limit, by="ada")


def test_throttling_an_unknown_job_is_refused_with_its_name(flow: Flow) -> None:
    acts: list[Callable[[], object]] = [
        lambda: throttle(flow.ledger, "nobody", 1, by="ada"),
        lambda: pause(flow.ledger, "nobody", by="ada"),
        lambda: resume(flow.ledger, "nobody", by="ada"),
        lambda: room(flow.ledger, "nobody"),
        lambda: force(flow.ledger, "nobody", "1", by="ada"),
        lambda: delete_run(flow.ledger, "nobody", "1", by="ada"),
    ]
    for act in acts:
        with pytest.raises(UnknownName, match="job nobody is not registered"):
            act()


def test_a_forced_claim_skips_the_questions_and_is_marked_as_forced(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    taken = force(flow.ledger, "clean", "1", by="ada")
    assert taken.attempt == 1
    flow.publish(taken)
    assert flow.status("tidy/1") == "READY"
    with flow.ledger.statement() as statement:
        events = chunks.history(statement, key("tidy/1"))
    assert [(event.new_status, event.reason, event.actor) for event in events] == [
        ("RUNNING", "forced by ada", "ada"),
        ("READY", None, "test"),
    ]
    found = flow.psql.execute("select forced, code, claim_id from dataflow.verdict where jobid = 'clean'").fetchall()
    assert found == [(True, "DATA_NOT_READY", taken.claim_id)]


@pytest.mark.parametrize("before", ["RUNNING", "READY", "FAILED", "HOLD", "SKIPPED", "PENDING"])
def test_a_forced_claim_takes_a_chunk_in_any_status_and_revokes_a_live_claim(flow: Flow, before: str) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["1"])
    older = claim(flow.ledger, "load", "1") if before == "RUNNING" else None
    if older is None:
        flow.type("update dataflow.datastatus set status = %s where datasetid = 'raw'", before)
    newer = force(flow.ledger, "load", "1", by="ada")
    if older is not None:
        with pytest.raises(ClaimLost):
            flow.publish(older)
    flow.publish(newer)
    assert flow.status("raw/1") == "READY"


def test_a_chunk_its_own_job_reads_cannot_be_forced_and_the_error_says_why(flow: Flow) -> None:
    flow.register("load: -> raw")
    flow.type("insert into dataflow.datastatus values ('raw', 'load', '1', 'IN', 'RUNNING', now())")
    with pytest.raises(LedgerConflict, match=r"load/1: no output can be claimed.*delete those rows"):
        force(flow.ledger, "load", "1", by="ada")
    assert flow.in_rows() == [("raw", "load", "1")]


def test_announced_chunks_of_an_external_dataset_wake_its_consumers(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", raw=external("raw"))
    assert announce(flow.ledger, "raw", ["2", "1"], by="ada") == [key("raw/1"), key("raw/2")]
    assert announce(flow.ledger, "raw", ["1"], by="ada") == []
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 10)] == ["1", "2"]


def test_an_announced_version_makes_consumers_of_the_old_one_stale(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", "report: tidy -> summary", raw=external("raw"))
    dataid = DataId("1")
    announce(flow.ledger, "raw", ["1"], by="ada", manifests={dataid: NewManifest(location="s3://lake/raw/1/a")})
    flow.produce("clean", "1")
    announce(flow.ledger, "raw", ["1"], by="ada", manifests={dataid: NewManifest(location="s3://lake/raw/1/b")})
    with pytest.raises(NoGo, match=r"tidy/1 is stale: it was made from version 1 of raw/1, but version 2 is current"):
        claim(flow.ledger, "report", "1")


@pytest.mark.slow
def test_20000_versions_are_announced_in_one_call(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", raw=external("raw"))
    many = [DataId(str(number)) for number in range(20_000)]
    versions = {dataid: NewManifest(location=f"s3://lake/raw/{dataid}", content_digest=dataid) for dataid in many}
    assert len(announce(flow.ledger, "raw", many, by="ada", manifests=versions)) == 20_000
    assert len(flow.runnable()) == 20_000


def test_an_impossible_announcement_is_refused_and_writes_nothing(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: other -> tidy", other=external("other"))
    with pytest.raises(InvalidInput, match="DataSet raw is produced by job load"):
        announce(flow.ledger, "raw", ["1"], by="ada")
    with pytest.raises(UnknownName, match="DataSet nothing is not registered"):
        announce(flow.ledger, "nothing", ["1"], by="ada")
    with pytest.raises(InvalidInput, match="manifests are given for 2, which is not announced"):
        announce(flow.ledger, "other", ["1"], by="ada", manifests={DataId("2"): NewManifest(location="/x")})
    assert flow.status("other/1") == "ABSENT"


def test_a_rollback_makes_an_old_version_current_and_its_consumers_stale(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", "report: tidy -> summary")
    flow.produce("load", "1", "good")
    with flow.ledger.statement() as statement:
        good = chunks.current_manifest(statement, key("raw/1"))
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    flow.produce("load", "1", "spoiled")
    flow.produce("clean", "1")
    assert rollback(flow.ledger, key("raw/1"), 1, by="ada", reason="the second delivery was wrong") == 3
    with flow.ledger.statement() as statement:
        now = chunks.current_manifest(statement, key("raw/1"))
        event = chunks.history(statement, key("raw/1"))[-1]
    assert good is not None
    assert now is not None
    assert (now.version, now.location, now.files) == (3, good.location, good.files)
    assert (event.actor, event.reason) == ("ada", "rolled back to version 1: the second delivery was wrong")
    with pytest.raises(NoGo, match="tidy/1 is stale"):
        claim(flow.ledger, "report", "1")


def test_a_rollback_makes_a_failed_chunk_ready_with_the_old_version(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    flow.produce("load", "1")
    flow.type("update dataflow.datastatus set status = 'FAILED' where datasetid = 'raw'")
    assert rollback(flow.ledger, key("raw/1"), 1, by="ada") == 2
    assert flow.status("raw/1") == "READY"
    assert len(claim_next(flow.ledger, "clean", 10)) == 1


def test_an_impossible_rollback_is_refused(flow: Flow) -> None:
    flow.register("load: -> raw")
    taken = flow.produce("load", "1")
    with pytest.raises(UnknownName, match="raw/1 has no version 7"):
        rollback(flow.ledger, key("raw/1"), 7, by="ada")
    with pytest.raises(UnknownName, match="there is no chunk raw/2"):
        rollback(flow.ledger, key("raw/2"), 1, by="ada")
    hold(flow.ledger, [key("raw/1")], by="ada")
    with pytest.raises(ForbiddenTransition, match="raw/1 is RUNNING or on HOLD"):
        rollback(flow.ledger, key("raw/1"), 1, by="ada")
    (flow.root / "raw" / f"claim-{taken.claim_id}" / "part-0").unlink()
    with pytest.raises(InvalidManifest, match="part-0"):
        rollback(flow.ledger, key("raw/1"), 1, by="ada")


def test_deleting_a_run_touches_only_that_jobs_rows(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", "count: raw -> total")
    flow.produce("load", "1")
    lost = claim(flow.ledger, "clean", "1")
    kept = claim(flow.ledger, "count", "1")
    assert key("tidy/1") in delete_run(flow.ledger, "clean", "1", by="ada", reason="a trial")
    assert flow.in_rows() == [("raw", "count", "1")]
    assert [flow.status(chunk) for chunk in ("raw/1", "tidy/1", "total/1")] == ["READY", "ABSENT", "RUNNING"]
    with pytest.raises(ClaimLost):
        publish(flow.ledger, lost, flow.manifest(lost))
    flow.publish(kept)
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 10)] == ["1"]


def test_no_retry_policy_restarts_a_chunk_that_an_operator_cancelled(flow: Flow) -> None:
    flow.register(job("load: -> raw", Policy(retry_on=".", max_attempts=9)))
    claim(flow.ledger, "load", "1")
    cancel(flow.ledger, [key("raw/1")], by="ada")
    assert heal(flow.ledger).retried == ()
    assert flow.status("raw/1") == "FAILED"
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    assert flow.chunk("raw/1").retries == 0, "a resubmit by an operator restores the retry budget"


def test_the_history_has_the_actor_and_reason_of_a_verb_for_rows_without_a_reason(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    with flow.ledger.transaction(actor="ada", reason="a trial") as transaction:
        registry.plan_chunks(transaction, load, [DataId("1")])
    fail(flow.ledger, claim(flow.ledger, "load", "1"), "disk full")
    with flow.ledger.transaction(actor="bob", reason="audit") as transaction:
        transaction.run_text(b"update dataflow.datastatus set status = 'SKIPPED' where dataid = '1'")
    delete_run(flow.ledger, "load", "1", by="cid", reason="over")
    with flow.ledger.statement() as statement:
        events = chunks.history(statement, key("raw/1"))
    assert [(event.new_status, event.actor, event.reason) for event in events] == [
        ("PENDING", "ada", "a trial"),
        ("RUNNING", "test", None),
        ("FAILED", "test", "disk full"),
        ("SKIPPED", "bob", "audit"),
        (None, "cid", "over"),
    ]


def test_a_resubmitted_chunk_of_an_earlier_day_runs(flow: Flow) -> None:
    flow.register("daily: today -> report", today=external("today"))
    yesterday = date_in("UTC", -1)
    flow.announce(f"today/{yesterday}")
    flow.type(
        "insert into dataflow.datastatus values ('report', 'daily', %s, 'OUT', 'FAILED', now())",
        yesterday,
    )
    assert yesterday not in [claim.dataid for claim in claim_next(flow.ledger, "daily", 10)]
    flow.type(
        "update dataflow.datastatus set status = 'RESUBMIT' where dataid = %s and datasetid = 'report'", yesterday
    )
    assert [claim.dataid for claim in claim_next(flow.ledger, "daily", 10)] == [yesterday]


FORMER = date_in("UTC", -100)
RESUBMITS_A_FORMER_DAY: dict[str, Callable[[Flow], object]] = {
    "typed": lambda flow: flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'report'"),
    "inserted": lambda flow: flow.type(
        "insert into dataflow.datastatus values ('other', 'also', %s, 'OUT', 'RESUBMIT', now())", FORMER
    ),
    "resubmit": lambda flow: resubmit(flow.ledger, [key(f"report/{FORMER}")], by="ada"),
}


@pytest.mark.parametrize("how", RESUBMITS_A_FORMER_DAY)
def test_a_resubmitted_day_before_the_first_one_of_this_ledger_runs_and_no_other(flow: Flow, how: str) -> None:
    flow.register(
        "daily: today -> report",
        "also: today -> other",
        job("eager: today -> news", Policy(catch_up=True)),
        today=external("today"),
    )
    flow.type("insert into dataflow.datastatus values ('report', 'daily', %s, 'OUT', 'FAILED', now())", FORMER)
    RESUBMITS_A_FORMER_DAY[how](flow)
    asked, others = ("also", "daily") if how == "inserted" else ("daily", "also")
    assert [claim.dataid for claim in claim_many(flow.ledger, asked, [FORMER]).claims] == [FORMER]
    heal(flow.ledger)
    for jobid in (others, "eager"):
        assert [claim.dataid for claim in claim_next(flow.ledger, jobid, 10)] == [date_in("UTC")], jobid
    assert_invariants(flow.psql)


def test_heal_opens_the_former_days_that_were_resubmitted_before_their_job_read_today(flow: Flow) -> None:
    flow.type("insert into dataflow.datastatus values ('report', 'daily', %s, 'OUT', 'RESUBMIT', now())", FORMER)
    flow.register("daily: today -> report", today=external("today"))
    heal(flow.ledger)
    assert [claim.dataid for claim in claim_next(flow.ledger, "daily", 10)] == [FORMER, date_in("UTC")]


def test_a_job_that_reads_today_registers_it_in_the_time_zone_of_the_server(flow: Flow) -> None:
    flow.type("insert into dataflow.dataset (datasetid) values ('news')")
    flow.type(
        "insert into dataflow.job (jobid, itemtype, datasetid) values ('pull', 'IN', 'today'), ('pull', 'OUT', 'news')"
    )
    zone = flow.psql.execute("select current_setting('timezone'), current_date::text").fetchone()
    assert zone is not None
    assert flow.psql.execute("select timezone from dataflow.dataset where datasetid = 'today'").fetchone() == zone[:1]
    assert [claim.dataid for claim in claim_next(flow.ledger, "pull")] == [zone[1]]


def test_an_import_of_a_job_that_reads_today_registers_it(flow: Flow) -> None:
    register(flow.ledger, [flow.dataset("report")], [job("daily: today -> report")])
    assert flow.psql.execute("select current_date::text").fetchall() == [
        (claim.dataid,) for claim in claim_next(flow.ledger, "daily")
    ]


@pytest.mark.parametrize("catches_up", [True, False])
def test_missed_days_are_caught_up_only_if_the_job_declares_catch_up(flow: Flow, catches_up: bool) -> None:
    flow.register(job("daily: today -> report", Policy(catch_up=catches_up)), today=external("today"))
    flow.announce(f"today/{date_in('UTC', -3)}", jobid="today")
    heal(flow.ledger)
    missed = [date_in("UTC", -days) for days in (3, 2, 1)]
    taken = [claim.dataid for claim in claim_next(flow.ledger, "daily", 10)]
    assert taken == ([*missed, date_in("UTC")] if catches_up else [date_in("UTC")])


def test_a_version_announced_outside_the_root_of_its_dataset_is_refused_to_consumers(flow: Flow) -> None:
    raw = Dataset(datasetid=DatasetId("raw"), location="s3://lake/raw")
    flow.register("clean: raw -> tidy", raw=replace(raw, foreign_ready="trusted"))
    elsewhere = {DataId("1"): NewManifest(location="s3://other/1")}
    announce(flow.ledger, "raw", ["1"], by="ada", manifests=elsewhere)
    with pytest.raises(NoGo, match="INVALID_PATH"):
        claim(flow.ledger, "clean", "1")
