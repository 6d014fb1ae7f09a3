"""The five questions: every no has its code, names the chunk, gives the next step, and claims nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest

from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.ledger import claims as ledger_claims
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.errors import InvalidManifest, NoGo
from opendataflow_dagster.model.ids import DataId, DatasetId, JobId
from opendataflow_dagster.model.job import ALL, ListedChunks, Policy, within
from opendataflow_dagster.model.manifest import ELSEWHERE, CheckResult, NewManifest
from opendataflow_dagster.model.partitions import daily, hourly
from opendataflow_dagster.model.problems import Question
from opendataflow_dagster.model.verdict import CODES, Answer, Code, Verdict
from opendataflow_dagster.protocol.announce import announce
from opendataflow_dagster.protocol.claim import claim, claim_many, claim_next
from opendataflow_dagster.protocol.force import force
from opendataflow_dagster.protocol.gate import gate
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.hold import hold, skip
from opendataflow_dagster.protocol.publish import StagedClaim, publish, publish_many
from opendataflow_dagster.protocol.register import register
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.resubmit import resubmit
from tests.effort import PATIENCE_SECONDS
from tests.factories import Flow, job, key
from tests.invariants import assert_invariants


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


# ---- what all refusals have in common


def ask_and_claim(flow: Flow, jobid: str, dataid: str) -> Verdict:
    """Gate and claim give the same no; nothing is claimed, and the answers are stored once."""
    before, stored = rows_of_chunks(flow), len(stored_verdicts(flow, jobid, dataid))
    (asked,) = gate(flow.ledger, jobid, [dataid])
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, jobid, dataid)
    assert refused.value.verdict.answers == asked.answers
    assert refused.value.verdict.inputs == asked.inputs
    assert [answer.question for answer in asked.answers] == list(Question)
    assert rows_of_chunks(flow) == before
    kept = stored_verdicts(flow, jobid, dataid)
    assert len(kept) - stored <= 1
    assert kept[-1].answers == asked.answers
    assert kept[-1].claim_id is None
    return asked


def assert_no(flow: Flow, jobid: str, dataid: str, code: Code, *words: str) -> Answer:
    """Gate and claim give this no with these words and a next step, and no other claim gets the chunk."""
    verdict = ask_and_claim(flow, jobid, dataid)
    before = rows_of_chunks(flow)
    assert claim_next(flow.ledger, jobid, 10) == []
    assert rows_of_chunks(flow) == before
    assert verdict.code is code, str(verdict)
    (answer,) = (answer for answer in verdict.answers if CODES[answer.question] is code)
    for word in words:
        assert word in answer.reason
    fact, _, step = answer.reason.rpartition("; ")
    assert fact, f"no next step: {answer.reason}"
    assert step
    return answer


def assert_go(flow: Flow, jobid: str, dataid: str) -> Claim:
    (asked,) = gate(flow.ledger, jobid, [dataid])
    assert asked.go, str(asked)
    assert [answer.question for answer in asked.answers] == list(Question)
    return claim(flow.ledger, jobid, dataid)


def assert_no_claim(flow: Flow, jobid: str, dataid: str, word: str) -> None:
    """Other chunks of the Job may run; this one may not."""
    assert word in str(ask_and_claim(flow, jobid, dataid))


def rows_of_chunks(flow: Flow) -> list[tuple[object, ...]]:
    """The rows that a claim would change."""
    tables = ("datastatus", "data_manifest", "chunk_event", "chunk_input", "job_run")
    looks = [f"select '{name}', to_jsonb(t)::text from dataflow.{name} t" for name in tables]
    return flow.psql.execute(f"{' union all '.join(looks)} order by 1, 2".encode()).fetchall()


def stored_verdicts(flow: Flow, jobid: str, dataid: str) -> list[Verdict]:
    with flow.ledger.statement() as statement:
        return chunks.verdicts(statement, JobId(jobid), DataId(dataid))


# ---- what the tests start from


def external(name: str) -> Dataset:
    """A trusted DataSet of an upstream client."""
    return Dataset(datasetid=DatasetId(name))


def foreign_input(flow: Flow) -> None:
    """`clean: raw -> tidy`, where a foreign client produces raw."""
    flow.register("clean: raw -> tidy", raw=external("raw"))


def managed_input(flow: Flow, *dataids: str) -> None:
    """`clean: raw -> tidy`, where this system has published chunks of raw."""
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, dataids)
    for dataid in dataids:
        flow.produce("load", dataid)


def republish(flow: Flow, chunk: str, jobid: str, content: str | None = None) -> Claim:
    resubmit(flow.ledger, [key(chunk)], by="ada")
    return flow.produce(jobid, key(chunk).dataid, content)


def current_manifest_id(flow: Flow, chunk: str) -> int:
    found = flow.chunk(chunk).manifest_id
    assert found is not None
    return found


def file_of(flow: Flow, chunk: str) -> Path:
    with flow.ledger.statement() as statement:
        found = chunks.current_manifest(statement, key(chunk))
    assert found is not None
    return Path(found.location) / found.files[0].path


# ---- READY


def test_a_missing_input_is_not_ready(flow: Flow) -> None:
    foreign_input(flow)
    assert_no(flow, "clean", "1", Code.DATA_NOT_READY, "raw/1 does not exist", "run its producer")


@pytest.mark.parametrize(
    "status", ["PENDING", "RUNNING", "FAILED", "RESUBMIT", "HOLD", "SKIPPED", "finished", "ready", ""]
)
def test_an_input_with_any_other_status_is_not_ready(flow: Flow, status: str) -> None:
    foreign_input(flow)
    flow.announce("raw/1", status)
    assert_no(
        flow, "clean", "1", Code.DATA_NOT_READY, f"raw/1 is {status} (job someone, since ", "resubmit it if it failed"
    )
    assert flow.runnable() == []


def test_an_input_without_a_status_is_not_ready(flow: Flow) -> None:
    foreign_input(flow)
    flow.type("insert into dataflow.datastatus values ('raw', 'someone', '1', 'OUT', null, now())")
    assert_no(flow, "clean", "1", Code.DATA_NOT_READY, "raw/1 is NULL (job someone")


def test_an_input_that_a_second_producer_is_writing_is_not_ready(flow: Flow) -> None:
    foreign_input(flow)
    flow.announce("raw/1", "READY", jobid="first")
    flow.announce("raw/1", "RUNNING", jobid="second")
    assert_no(flow, "clean", "1", Code.DATA_NOT_READY, "raw/1 is RUNNING (job second")
    flow.type("update dataflow.datastatus set status = 'READY' where jobid = 'second'")
    assert_go(flow, "clean", "1")


def test_a_skipped_input_declared_as_passing_lets_its_consumer_run(flow: Flow) -> None:
    load, _ = flow.register(
        "load: -> raw", "clean: raw -> tidy", raw=replace(flow.dataset("raw"), skipped_input="passes")
    )
    flow.plan(load, ["1", "2"])
    flow.produce("load", "2")
    skip(flow.ledger, [key("raw/1"), key("raw/2")], by="ada", reason="a holiday")
    for dataid in ("1", "2"):
        taken = assert_go(flow, "clean", dataid)
        assert taken.manifests == ()
        assert [needed.manifest_id for needed in taken.inputs] == [None]


def test_a_skipped_input_never_lets_its_consumer_run_on_the_previous_version(flow: Flow) -> None:
    managed_input(flow, "1")
    skip(flow.ledger, [key("raw/1")], by="ada", reason="a holiday")
    assert_no(flow, "clean", "1", Code.DATA_NOT_READY, "raw/1 is SKIPPED", "a holiday")


def test_a_day_waits_for_the_last_of_its_hours(flow: Flow) -> None:
    hours, days = hourly("2024-01-01-00:00"), daily("2024-01-01")
    (sum_up,) = flow.register(job("sum: hours -> days", hours=within(days, hours)), hours=external("hours"))
    flow.plan(sum_up, ["2024-01-01"])
    for hour in range(24):
        if hour != 13:
            flow.announce(f"hours/2024-01-01-{hour:02}:00")
    assert_no(flow, "sum", "2024-01-01", Code.DATA_NOT_READY, "hours/2024-01-01-13:00 does not exist")
    flow.announce("hours/2024-01-01-13:00", "RUNNING")
    assert_no(flow, "sum", "2024-01-01", Code.DATA_NOT_READY, "hours/2024-01-01-13:00 is RUNNING")
    flow.type("update dataflow.datastatus set status = 'READY' where status = 'RUNNING'")
    assert len(assert_go(flow, "sum", "2024-01-01").inputs) == 24


def test_a_long_list_of_missing_inputs_is_cut_after_three(flow: Flow) -> None:
    hours, days = hourly("2024-01-01-00:00"), daily("2024-01-01")
    (sum_up,) = flow.register(job("sum: hours -> days", hours=within(days, hours)), hours=external("hours"))
    flow.plan(sum_up, ["2024-01-01"])
    answer = assert_no(flow, "sum", "2024-01-01", Code.DATA_NOT_READY, "and 21 more")
    assert answer.reason.count("does not exist") == 3


def test_a_chunk_whose_inputs_were_never_listed_is_not_ready(flow: Flow) -> None:
    flow.register(job("sum: hours -> days", hours=ListedChunks(lambda _: ["1"])), hours=external("hours"))
    flow.announce("hours/1")
    assert_no(flow, "sum", "2024-01-01", Code.DATA_NOT_READY, "no input chunks of hours are known", "plan the chunk")


def test_a_chunk_made_of_all_chunks_waits_for_each_of_them(flow: Flow) -> None:
    (total,) = flow.register(job("total: codes -> sum", codes=ALL), codes=external("codes"))
    flow.plan(total, ["1"])
    assert_no(flow, "total", "1", Code.DATA_NOT_READY, "codes")
    flow.announce("codes/a")
    flow.announce("codes/b", "RUNNING")
    assert_no(flow, "total", "1", Code.DATA_NOT_READY, "codes/b is RUNNING")
    flow.type("update dataflow.datastatus set status = 'READY' where status = 'RUNNING'")
    assert {str(needed) for needed in assert_go(flow, "total", "1").inputs} == {"codes/a", "codes/b"}


def test_a_chunk_of_an_ordered_job_waits_for_its_turn(flow: Flow) -> None:
    (load,) = flow.register(job("load: -> raw", Policy(ordered=True)))
    flow.plan(load, ["9", "10"])
    first = claim(flow.ledger, "load", "9")
    assert_no(flow, "load", "10", Code.DATA_NOT_READY, "9", "strictly ordered")
    fail(flow.ledger, first, "disk full")
    assert_no(flow, "load", "10", Code.DATA_NOT_READY, "9")
    resubmit(flow.ledger, [key("raw/9")], by="ada")
    flow.produce("load", "9")
    assert_go(flow, "load", "10")


def one_at_a_time(flow: Flow, jobid: str) -> list[str]:
    """The order in which an ordered Job gets its chunks: never two at once."""
    order: list[str] = []
    while taken := claim_next(flow.ledger, jobid, 10):
        assert_invariants(flow.psql)
        order += [claim.dataid for claim in taken]
        assert claim_next(flow.ledger, jobid, 10) == []
        flow.publish(taken[0])
    return order


def test_an_ordered_job_runs_one_chunk_at_a_time_even_if_an_earlier_one_comes_late(flow: Flow) -> None:
    flow.register("load: -> raw", job("clean: raw -> tidy", Policy(ordered=True)))
    for dataid in ("10", "9", "2"):
        flow.produce("load", dataid)
    assert_invariants(flow.psql)
    assert_no_claim(flow, "clean", "10", "chunk 2 comes first")
    assert one_at_a_time(flow, "clean") == ["2", "9", "10"]


def test_an_ordered_job_planned_backwards_runs_forwards(flow: Flow) -> None:
    (load,) = flow.register(job("load: -> raw", Policy(ordered=True)))
    for dataid in ("10", "9", "2"):
        flow.plan(load, [dataid])
    assert one_at_a_time(flow, "load") == ["2", "9", "10"]


def test_an_ordered_job_registered_after_its_inputs_runs_in_order(flow: Flow) -> None:
    flow.register("load: -> raw")
    for dataid in ("10", "9", "2"):
        flow.produce("load", dataid)
    flow.register("load: -> raw", job("clean: raw -> tidy", Policy(ordered=True)))
    assert_invariants(flow.psql)
    assert one_at_a_time(flow, "clean") == ["2", "9", "10"]


def test_a_resubmitted_chunk_of_an_ordered_job_runs_before_later_ones(flow: Flow) -> None:
    flow.register("load: -> raw", job("clean: raw -> tidy", Policy(ordered=True)))
    for dataid in ("1", "2"):
        flow.produce("load", dataid)
    flow.produce("clean", "1")
    resubmit(flow.ledger, [key("tidy/1")], by="ada")
    assert_invariants(flow.psql)
    assert one_at_a_time(flow, "clean") == ["1", "2"]


def test_an_earlier_chunk_of_an_ordered_job_waits_for_the_running_one(flow: Flow) -> None:
    flow.register("load: -> raw", job("clean: raw -> tidy", Policy(ordered=True)))
    flow.produce("load", "2")
    running = claim(flow.ledger, "clean", "2")
    flow.produce("load", "1")
    assert_no(flow, "clean", "1", Code.DATA_NOT_READY, "chunk 2 comes first")
    flow.publish(running)
    assert_go(flow, "clean", "1")


def test_an_ordered_job_claimed_by_several_names_gets_only_the_first(flow: Flow) -> None:
    flow.register(job("load: -> raw", Policy(ordered=True)))
    found = claim_many(flow.ledger, "load", ["10", "9"])
    assert [claim.dataid for claim in found.claims] == ["9"]
    assert [(verdict.dataid, verdict.code) for verdict in found.refused] == [("10", Code.DATA_NOT_READY)]


# Never the same date, at no time of no day: they are 25 hours apart.
EARLIEST, LATEST = "Pacific/Kiritimati", "Pacific/Pago_Pago"


def date_in(zone: str, days: int = 0) -> str:
    return (datetime.now(ZoneInfo(zone)) + timedelta(days=days)).strftime("%Y-%m-%d")


@pytest.mark.parametrize(("zone", "elsewhere"), [(EARLIEST, LATEST), (LATEST, EARLIEST)])
def test_today_is_ready_only_for_the_current_date_in_its_time_zone(flow: Flow, zone: str, elsewhere: str) -> None:
    flow.register("daily: today -> report", today=replace(external("today"), timezone=zone))
    flow.announce(f"today/{date_in(elsewhere)}")
    verdict = ask_and_claim(flow, "daily", date_in(elsewhere))
    assert verdict.code is Code.DATA_NOT_READY
    assert f"today/{date_in(elsewhere)} is not the current day in {zone}; wait for the day" in str(verdict)
    assert [claim.dataid for claim in claim_next(flow.ledger, "daily", 10)] == [date_in(zone)]


def test_today_is_not_ready_for_yesterday(flow: Flow) -> None:
    flow.register("daily: today -> report", today=external("today"))
    yesterday = date_in("UTC", -1)
    flow.announce(f"today/{yesterday}")
    assert ask_and_claim(flow, "daily", yesterday).code is Code.DATA_NOT_READY
    heal(flow.ledger)
    assert ask_and_claim(flow, "daily", yesterday).code is Code.DATA_NOT_READY
    assert_go(flow, "daily", date_in("UTC"))


# ---- RIGHT


@pytest.mark.parametrize("dataid", ["2024-02-30", "2023-12-31", "2024-1-2", "yesterday"])
def test_a_dataid_that_the_input_does_not_have_is_wrong_data(flow: Flow, dataid: str) -> None:
    flow.register("clean: raw -> tidy", raw=replace(external("raw"), partitions=daily("2024-01-01")))
    flow.announce(f"raw/{dataid}")
    assert_no(flow, "clean", dataid, Code.WRONG_DATA, "raw", dataid, "correct its partitions")


def test_a_dataid_that_the_output_does_not_have_is_wrong_data(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw", raw=replace(flow.dataset("raw"), partitions=daily("2024-01-01")))
    flow.announce("raw/2024-02-30", "PENDING", jobid="load")
    assert_no(flow, "load", "2024-02-30", Code.WRONG_DATA, "raw has no partition 2024-02-30")
    flow.plan(load, ["2024-02-29"])
    assert_go(flow, "load", "2024-02-29")


def test_a_pointer_to_an_older_version_is_wrong_data(flow: Flow) -> None:
    managed_input(flow, "1")
    old = current_manifest_id(flow, "raw/1")
    republish(flow, "raw/1", "load")
    flow.type("update dataflow.datastatus set manifest_id = %s where datasetid = 'raw'", old)
    assert_no(flow, "clean", "1", Code.WRONG_DATA, "raw/1 points to version 1", "resubmit it")


@pytest.mark.parametrize("other", ["another dataid", "another DataSet", "nothing"])
def test_a_pointer_to_another_chunks_manifest_is_wrong_data(flow: Flow, other: str) -> None:
    load, more, _ = flow.register("load: -> raw", "more: -> else", "clean: raw -> tidy")
    flow.plan(load, ["1", "2"])
    flow.plan(more, ["1"])
    for jobid, dataid in (("load", "1"), ("load", "2"), ("more", "1")):
        flow.produce(jobid, dataid)
    hold(flow.ledger, [key("raw/2")], by="ada")  # keeps claim_next to the chunk in question
    pointer = {
        "another dataid": current_manifest_id(flow, "raw/2"),
        "another DataSet": current_manifest_id(flow, "else/1"),
    }
    flow.type(
        "update dataflow.datastatus set manifest_id = %s where datasetid = 'raw' and dataid = '1'",
        pointer.get(other, 999),
    )
    assert_no(flow, "clean", "1", Code.WRONG_DATA, "raw/1 points to a manifest of another chunk", "resubmit it")


def test_a_schema_other_than_the_declared_one_is_wrong_data(flow: Flow) -> None:
    old, new = (replace(flow.dataset("raw"), schema_hash=schema_hash) for schema_hash in ("old-hash", "new-hash"))
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy", raw=old)
    flow.plan(load, ["1"])
    taken = claim(flow.ledger, "load", "1")
    publish(flow.ledger, taken, replace(flow.manifest(taken), schema_hash="old-hash"))
    register(flow.ledger, [new])
    assert_no(
        flow, "clean", "1", Code.WRONG_DATA, "raw/1 has schema old-hash, declared is new-hash", "declare the new schema"
    )
    register(flow.ledger, [old])
    assert_go(flow, "clean", "1")


def test_yesterdays_file_again_is_wrong_data_until_the_other_chunk_changes(flow: Flow) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["2024-01-01", "2024-01-02"])
    flow.produce("load", "2024-01-01", content="the same")
    flow.produce("load", "2024-01-02", content="the same")
    for dataid, other in (("2024-01-01", "2024-01-02"), ("2024-01-02", "2024-01-01")):
        assert_no(
            flow,
            "clean",
            dataid,
            Code.WRONG_DATA,
            f"raw/{dataid} has the same content as raw/{other}",
            "resubmit the wrong one",
        )
    republish(flow, "raw/2024-01-02", "load", content="its own")
    heal(flow.ledger)
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 10)] == ["2024-01-01", "2024-01-02"]


def test_repeated_content_is_right_where_the_dataset_allows_repeats(flow: Flow) -> None:
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy", raw=replace(flow.dataset("raw"), repeats=True))
    flow.plan(load, ["1", "2"])
    for dataid in ("1", "2"):
        flow.produce("load", dataid, content="the same")
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 10)] == ["1", "2"]


def test_the_same_content_in_a_new_version_of_the_same_chunk_is_right(flow: Flow) -> None:
    (load, _) = flow.register("load: -> raw", "clean: raw -> tidy")
    flow.plan(load, ["1"])
    flow.produce("load", "1", content="the same")
    republish(flow, "raw/1", "load", content="the same")
    assert_go(flow, "clean", "1")


def test_an_input_made_from_an_old_version_is_stale_until_resubmitted(flow: Flow) -> None:
    load, _, _ = flow.register("load: -> raw", "clean: raw -> tidy", "report: tidy -> pages")
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    flow.produce("clean", "1")
    republish(flow, "raw/1", "load")
    assert_no(
        flow,
        "report",
        "1",
        Code.WRONG_DATA,
        "tidy/1 is stale: it was made from version 1 of raw/1, but version 2 is current",
        "resubmit",
    )
    republish(flow, "tidy/1", "clean")
    assert_go(flow, "report", "1")


def test_an_input_made_from_foreign_data_is_stale_once_that_has_a_version(flow: Flow) -> None:
    flow.register(
        "load: -> raw",
        "clean: raw -> tidy",
        "report: tidy -> pages",
        raw=replace(flow.dataset("raw"), foreign_ready="trusted"),
    )
    flow.announce("raw/1", jobid="load")
    flow.produce("clean", "1")
    republish(flow, "raw/1", "load")
    assert_no(
        flow,
        "report",
        "1",
        Code.WRONG_DATA,
        "tidy/1 is stale: it was made from a version without a manifest of raw/1",
        "version 1 is current",
    )
    republish(flow, "tidy/1", "clean")
    assert_go(flow, "report", "1")


def test_a_stale_chunk_is_rebuilt_automatically_if_its_job_cascades(flow: Flow) -> None:
    load, _, _ = flow.register("load: -> raw", job("clean: raw -> tidy", Policy(cascade=True)), "report: tidy -> pages")
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    flow.produce("clean", "1")
    assert heal(flow.ledger).rebuilt == ()
    republish(flow, "raw/1", "load")
    assert heal(flow.ledger).rebuilt == (key("tidy/1"),)
    flow.produce("clean", "1")
    assert_go(flow, "report", "1")


def test_resubmit_downstream_rebuilds_everything_made_from_a_chunk(flow: Flow) -> None:
    load, _, days, total = flow.register(
        "load: -> raw",
        "clean: raw -> tidy",
        job("days: tidy -> dates", tidy=ListedChunks(lambda _: ["1"])),
        job("total: dates -> sums", dates=ALL),
    )
    flow.plan(load, ["1", "2"])
    for jobid, dataid in (("load", "1"), ("load", "2"), ("clean", "1"), ("clean", "2")):
        flow.produce(jobid, dataid)
    flow.plan(days, ["a"])
    flow.produce("days", "a")
    flow.plan(total, ["z"])
    flow.produce("total", "z")
    done = resubmit(flow.ledger, [key("raw/1")], by="ada", with_downstream=True)
    assert {str(chunk) for chunk in done.chunks} == {"raw/1", "tidy/1", "dates/a", "sums/z"}
    assert (flow.status("raw/2"), flow.status("tidy/2")) == ("READY", "READY")
    for jobid, dataid in (("load", "1"), ("clean", "1"), ("days", "a"), ("total", "z")):
        (taken,) = claim_next(flow.ledger, jobid, 10)
        assert taken.dataid == dataid
        flow.publish(taken)


def test_an_input_made_from_data_a_foreign_client_replaced_is_stale(flow: Flow) -> None:
    load, _, _ = flow.register(
        "load: -> raw",
        "clean: raw -> tidy",
        "report: tidy -> pages",
        raw=replace(flow.dataset("raw"), foreign_ready="trusted"),
    )
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    flow.produce("clean", "1")
    for status in ("RESUBMIT", "RUNNING", "READY"):
        flow.type("update dataflow.datastatus set status = %s where datasetid = 'raw' and locktype = 'OUT'", status)
    assert_no(flow, "report", "1", Code.WRONG_DATA, "tidy/1 is stale: it was made from version 1 of raw/1", "resubmit")


def test_an_input_with_two_producers_does_not_make_its_consumers_stale(flow: Flow) -> None:
    load, _, _ = flow.register(
        "load: -> raw",
        "clean: raw -> tidy",
        "report: tidy -> pages",
        raw=replace(flow.dataset("raw"), foreign_ready="trusted"),
    )
    flow.plan(load, ["1"])
    flow.produce("load", "1")
    flow.announce("raw/1", jobid="someone")
    flow.produce("clean", "1")
    assert_go(flow, "report", "1")


def announced(flow: Flow, dataid: str, content: str) -> None:
    place = NewManifest(location=f"elsewhere/{dataid}/{content}", content_digest=content)
    announce(flow.ledger, "raw", [dataid], by="ada", manifests={DataId(dataid): place})


def test_repeated_announced_content_is_wrong_data_for_waiting_chunks_too(flow: Flow) -> None:
    foreign_input(flow)
    announced(flow, "1", "same")
    announced(flow, "2", "same")
    assert_invariants(flow.psql)
    assert_no(flow, "clean", "1", Code.WRONG_DATA, "raw/1 has the same content as raw/2")


def test_a_repeated_chunk_is_right_once_the_other_row_is_deleted(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    flow.produce("load", "1", "same")
    flow.produce("load", "2", "same")
    flow.type("delete from dataflow.datastatus where datasetid = 'raw' and dataid = '2'")
    assert_invariants(flow.psql)
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 5)] == ["1"]


@pytest.mark.parametrize("with_a_version", [True, False])
def test_a_chunk_made_from_a_row_that_was_deleted_and_recreated_is_stale(flow: Flow, with_a_version: bool) -> None:
    flow.register("clean: raw -> tidy", "total: tidy -> sums", raw=external("raw"))
    announced(flow, "1", "old")
    flow.produce("clean", "1")
    flow.type("delete from dataflow.datastatus where datasetid = 'raw'")
    assert_invariants(flow.psql)
    if with_a_version:
        announced(flow, "1", "new")
    else:
        flow.announce("raw/1")
    assert_invariants(flow.psql)
    assert_no(flow, "total", "1", Code.WRONG_DATA, "tidy/1 is stale: it was made from version 1 of raw/1")


def test_a_chunk_made_without_its_skipped_input_is_not_stale(flow: Flow) -> None:
    passes = replace(flow.dataset("raw"), skipped_input="passes")
    flow.register("load: -> raw", job("clean: raw -> tidy", Policy(cascade=True)), "total: tidy -> sums", raw=passes)
    flow.produce("load", "1")
    skip(flow.ledger, [key("raw/1")], by="ada")
    flow.produce("clean", "1")
    assert heal(flow.ledger).rebuilt == ()
    assert_invariants(flow.psql)
    assert_go(flow, "total", "1")


def test_a_chunk_made_without_an_input_is_stale_once_that_is_no_longer_skipped(flow: Flow) -> None:
    passes = replace(flow.dataset("raw"), skipped_input="passes")
    flow.register("load: -> raw", "clean: raw -> tidy", "total: tidy -> sums", raw=passes)
    flow.produce("load", "1")
    skip(flow.ledger, [key("raw/1")], by="ada")
    flow.produce("clean", "1")
    republish(flow, "raw/1", "load")
    assert_invariants(flow.psql)
    assert_no(flow, "total", "1", Code.WRONG_DATA, "tidy/1 is stale", "raw/1", "version 2 is current")


def test_an_unregistered_dataset_is_wrong_data(flow: Flow) -> None:
    flow.type(
        "insert into dataflow.job (jobid, itemtype, datasetid) values ('clean', 'IN', 'raw'), ('clean', 'OUT', 'tidy')"
    )
    flow.announce("raw/1")
    answer = assert_no(flow, "clean", "1", Code.WRONG_DATA, "DataSet raw is not registered; register it")
    assert "DataSet tidy is not registered; register it" in answer.reason
    flow.type("insert into dataflow.dataset (datasetid) values ('raw')")
    assert_no(flow, "clean", "1", Code.WRONG_DATA, "DataSet tidy is not registered; register it")
    flow.type("insert into dataflow.dataset (datasetid) values ('tidy')")
    assert_go(flow, "clean", "1")


def test_a_job_registered_in_sql_without_an_output_cannot_run(flow: Flow) -> None:
    flow.type("insert into dataflow.dataset (datasetid) values ('raw')")
    flow.type("insert into dataflow.job (jobid, itemtype, datasetid) values ('clean', 'IN', 'raw')")
    flow.announce("raw/1")
    assert_no(flow, "clean", "1", Code.WRONG_DATA, "job clean has no OUT DataSet; register one")


@pytest.mark.parametrize("gone", ["raw", "tidy"])
def test_a_dataset_that_is_no_longer_registered_is_wrong_data(flow: Flow, gone: str) -> None:
    foreign_input(flow)
    flow.announce("raw/1")
    assert flow.runnable() == [("clean", "1")]
    flow.type("delete from dataflow.dataset where datasetid = %s", gone)
    assert_no(flow, "clean", "1", Code.WRONG_DATA, f"DataSet {gone} is not registered; register it")


def test_a_chunk_of_an_ordered_job_without_its_turn_waits_whatever_else_is_wrong(flow: Flow) -> None:
    flow.register("load: -> raw", job("post: raw -> books", Policy(ordered=True)))
    for dataid in ("3", "2"):
        flow.produce("load", dataid, "the same")
    assert gate(flow.ledger, "post", ["2"])[0].code is Code.WRONG_DATA
    flow.produce("load", "1")
    assert gate(flow.ledger, "post", ["2"])[0].code is Code.DATA_NOT_READY
    assert_invariants(flow.psql)


def test_a_job_that_becomes_ordered_is_ordered_at_once(flow: Flow) -> None:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, ["9", "10"])
    first = claim(flow.ledger, "load", "9")
    flow.register(job("load: -> raw", Policy(ordered=True)))
    assert_no(flow, "load", "10", Code.DATA_NOT_READY, "9", "strictly ordered")
    flow.publish(first)
    assert_go(flow, "load", "10")


def test_a_job_that_stops_being_ordered_is_unordered_at_once(flow: Flow) -> None:
    (load,) = flow.register(job("load: -> raw", Policy(ordered=True)))
    flow.plan(load, ["9", "10"])
    claim(flow.ledger, "load", "9")
    flow.register("load: -> raw")
    assert [claim.dataid for claim in claim_next(flow.ledger, "load", 10)] == ["10"]


def test_a_chunk_waits_for_an_input_listed_by_hand(flow: Flow) -> None:
    (days,) = flow.register(job("days: hours -> dates", hours=ListedChunks(lambda _: ["1"])), hours=external("hours"))
    flow.announce("hours/1")
    flow.plan(days, ["a"])
    assert flow.runnable() == [("days", "a")]
    flow.type("insert into dataflow.chunk_input values ('days', 'a', 'hours', '2')")
    assert_no(flow, "days", "a", Code.DATA_NOT_READY, "hours/2 does not exist")


# ---- PLACED


@pytest.mark.parametrize("folder", ["elsewhere", "raw2", "ra"])
def test_a_version_outside_of_its_root_is_misplaced(flow: Flow, folder: str) -> None:
    """Also where one root is a prefix of the other."""
    before = replace(flow.dataset("raw"), location=str(flow.root / folder))
    load, _ = flow.register("load: -> raw", "clean: raw -> tidy", raw=before)
    flow.plan(load, ["1"])
    taken = claim(flow.ledger, "load", "1")
    published = NewManifest(location=str(flow.root / folder / "claim-1"))
    publish(flow.ledger, taken, published)
    register(flow.ledger, [flow.dataset("raw")])
    assert_no(
        flow,
        "clean",
        "1",
        Code.INVALID_PATH,
        f"raw/1 is at {published.location}, outside its root {flow.root}/raw",
        "resubmit",
    )
    register(flow.ledger, [before])
    assert_go(flow, "clean", "1")


def test_a_missing_file_is_misplaced_until_it_is_back_and_heal_has_run(flow: Flow) -> None:
    managed_input(flow, "1")
    file = file_of(flow, "raw/1")
    content = file.read_bytes()
    file.unlink()
    assert_no(flow, "clean", "1", Code.INVALID_PATH, f"{file} is missing", "resubmit the chunk")
    file.write_bytes(content)
    assert claim_next(flow.ledger, "clean") == [], "a refused chunk is not asked again at every turn"
    assert heal(flow.ledger).asked_again == 1
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean")] == ["1"]


def test_a_missing_folder_is_misplaced(flow: Flow) -> None:
    managed_input(flow, "1")
    file = file_of(flow, "raw/1")
    file.unlink()
    file.parent.rmdir()
    assert_no(flow, "clean", "1", Code.INVALID_PATH, str(file.parent), "restore the files")


def test_a_file_of_another_size_is_misplaced(flow: Flow) -> None:
    managed_input(flow, "1")
    file = file_of(flow, "raw/1")
    size = file.stat().st_size
    file.write_bytes(b"cut")
    assert_no(
        flow, "clean", "1", Code.INVALID_PATH, f"{file} has 3 bytes, its manifest says {size}", "resubmit the chunk"
    )


def test_a_misplaced_chunk_does_not_block_its_neighbours(flow: Flow) -> None:
    managed_input(flow, "1", "2", "3")
    file_of(flow, "raw/2").unlink()
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 10)] == ["1", "3"]
    assert [verdict.code for verdict in stored_verdicts(flow, "clean", "2")] == [Code.INVALID_PATH]


def test_the_chunks_behind_a_misplaced_one_are_claimed_in_order(flow: Flow) -> None:
    managed_input(flow, *"12345678")
    file_of(flow, "raw/2").unlink()
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 3)] == ["1", "3", "4"]


def test_one_misplaced_chunk_does_not_stop_the_other_claims_by_name(flow: Flow) -> None:
    managed_input(flow, "1", "2", "3")
    file_of(flow, "raw/2").unlink()
    found = claim_many(flow.ledger, "clean", ["1", "2", "3"])
    assert [claim.dataid for claim in found.claims] == ["1", "3"]
    assert [(verdict.dataid, verdict.code) for verdict in found.refused] == [("2", Code.INVALID_PATH)]


# ---- VALID


def test_foreign_ready_data_is_refused_where_the_dataset_refuses_it(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", raw=replace(external("raw"), foreign_ready="refused"))
    flow.announce("raw/1")
    assert_no(
        flow,
        "clean",
        "1",
        Code.NOT_VALIDATED,
        "raw/1 became READY without a manifest, which raw refuses",
        "resubmit it",
    )


@pytest.mark.parametrize("managed", [False, True])
def test_foreign_ready_data_is_trusted_where_the_dataset_trusts_it(flow: Flow, managed: bool) -> None:
    raw = flow.dataset("raw") if managed else external("raw")
    flow.register("clean: raw -> tidy", raw=replace(raw, foreign_ready="trusted"))
    flow.announce("raw/1")
    taken = assert_go(flow, "clean", "1")
    assert [needed.manifest_id for needed in taken.inputs] == [None]
    assert taken.manifests == ()


@pytest.mark.parametrize("before", ["FAILED", "RUNNING"])
def test_ready_typed_on_a_managed_chunk_does_not_reuse_the_previous_version(flow: Flow, before: str) -> None:
    managed_input(flow, "1")
    if before == "RUNNING":
        resubmit(flow.ledger, [key("raw/1")], by="ada")
        claim(flow.ledger, "load", "1")
    else:
        flow.type("update dataflow.datastatus set status = %s where datasetid = 'raw'", before)
    flow.type("update dataflow.datastatus set status = 'READY' where datasetid = 'raw'")
    assert flow.chunk("raw/1").manifest_id is None
    assert_no(flow, "clean", "1", Code.NOT_VALIDATED, "raw/1 became READY without a manifest", "resubmit it")
    republish(flow, "raw/1", "load")
    assert_go(flow, "clean", "1")


def test_a_version_with_a_failed_check_is_not_validated(flow: Flow) -> None:
    managed_input(flow, "1")
    flow.type(
        "insert into dataflow.data_manifest (datasetid, dataid, version, jobid, location, checks)"
        " select datasetid, dataid, 2, jobid, location, %s from dataflow.data_manifest",
        '[{"name": "rows", "passed": true}, {"name": "nulls", "passed": false}]',
    )
    flow.type(
        "update dataflow.datastatus set manifest_id = (select max(manifest_id) from dataflow.data_manifest)"
        " where datasetid = 'raw'"
    )
    assert_no(flow, "clean", "1", Code.NOT_VALIDATED, "raw/1 version 2 failed nulls", "resubmit it")


# ---- SAFE


@pytest.mark.parametrize("holder", ["clean", "another job"])
@pytest.mark.parametrize("status", ["RUNNING", "READY", "FAILED", "HOLD", "SKIPPED", "finished", "resubmit"])
def test_an_output_that_is_not_free_is_locked_whatever_holds_it(flow: Flow, status: str, holder: str) -> None:
    foreign_input(flow)
    flow.announce("raw/1")
    flow.announce("tidy/1", status, jobid=holder)
    steps = {"RUNNING": "wait for it, or resubmit it", "HOLD": "unhold it"}
    assert_no(
        flow,
        "clean",
        "1",
        Code.LOCKED,
        f"tidy/1 is {status} (job {holder}",
        steps.get(status, "resubmit it to run it again"),
    )
    assert flow.runnable() == []


def test_an_output_without_a_status_is_locked(flow: Flow) -> None:
    foreign_input(flow)
    flow.announce("raw/1")
    flow.type("insert into dataflow.datastatus values ('tidy', 'clean', '1', 'OUT', null, now())")
    assert_no(flow, "clean", "1", Code.LOCKED, "tidy/1 is NULL (job clean")


@pytest.mark.parametrize("status", ["PENDING", "RESUBMIT"])
@pytest.mark.parametrize("holder", ["clean", "another job"])
def test_an_output_that_is_pending_or_resubmitted_is_free(flow: Flow, status: str, holder: str) -> None:
    foreign_input(flow)
    flow.announce("raw/1")
    flow.announce("tidy/1", status, jobid=holder)
    assert flow.runnable() == [("clean", "1")]
    assert_go(flow, "clean", "1")


def test_one_locked_output_locks_the_claim_of_both(flow: Flow) -> None:
    flow.register("clean: raw -> tidy, bad", raw=external("raw"))
    flow.announce("raw/1")
    flow.announce("bad/1", "RUNNING")
    assert_no(flow, "clean", "1", Code.LOCKED, "bad/1 is RUNNING")
    assert flow.status("tidy/1") == "ABSENT"


def test_a_job_that_is_already_reading_the_input_is_locked(flow: Flow) -> None:
    foreign_input(flow)
    flow.announce("raw/1")
    flow.type("insert into dataflow.datastatus values ('raw', 'clean', '1', 'IN', 'RUNNING', now())")
    assert_no(flow, "clean", "1", Code.LOCKED, "job clean is already reading raw/1", "resubmit its output")
    flow.type("delete from dataflow.datastatus where locktype = 'IN'")
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean")] == ["1"]


def test_an_input_lock_blocks_only_its_own_job(flow: Flow) -> None:
    flow.register("clean: raw -> tidy", "count: raw -> counts", raw=external("raw"))
    flow.announce("raw/1")
    assert_go(flow, "clean", "1")
    assert_go(flow, "count", "1")
    assert flow.in_rows() == [("raw", "clean", "1"), ("raw", "count", "1")]


def test_a_producer_may_rerun_while_a_consumer_reads_its_pinned_version(flow: Flow) -> None:
    managed_input(flow, "1")
    reader = claim(flow.ledger, "clean", "1")
    republish(flow, "raw/1", "load")
    assert Path(reader.manifests[0].location, "part-0").is_file(), "the reader's version stays"
    flow.publish(reader)


def test_a_producer_may_not_rerun_while_a_foreign_consumer_reads_in_place(flow: Flow) -> None:
    managed_input(flow, "1")
    flow.type("insert into dataflow.datastatus values ('raw', 'foreign', '1', 'IN', 'RUNNING', now())")
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    assert_no(flow, "load", "1", Code.LOCKED, "a consumer is reading raw/1 in place", "wait for it")
    flow.type("delete from dataflow.datastatus where locktype = 'IN'")
    assert [claim.dataid for claim in claim_next(flow.ledger, "load")] == ["1"], "asked again without anybody's help"


def test_a_foreign_consumer_in_place_that_changes_its_key_locks_the_other_chunk(flow: Flow) -> None:
    managed_input(flow, "1")
    managed_input(flow, "2")
    flow.type("insert into dataflow.datastatus values ('raw', 'foreign', '1', 'IN', 'RUNNING', now())")
    resubmit(flow.ledger, [key("raw/1"), key("raw/2")], by="ada")
    flow.type("update dataflow.datastatus set dataid = '2' where jobid = 'foreign'")
    assert_invariants(flow.psql)
    assert [claim.dataid for claim in claim_next(flow.ledger, "load")] == ["1"], "asked again without anybody's help"
    assert_no(flow, "load", "2", Code.LOCKED, "a consumer is reading raw/2 in place")


def test_a_producer_may_not_rerun_while_a_consumer_reads_without_a_manifest(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", raw=replace(flow.dataset("raw"), foreign_ready="trusted"))
    flow.announce("raw/1", jobid="load")
    reader = claim(flow.ledger, "clean", "1")
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    assert_no(flow, "load", "1", Code.LOCKED, "a consumer is reading raw/1 in place")
    flow.publish(reader)
    assert [claim.dataid for claim in claim_next(flow.ledger, "load")] == ["1"]


def test_a_producer_may_not_rerun_while_a_consumer_reads_a_shared_location(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", raw=external("raw"))
    publish(flow.ledger, claim(flow.ledger, "load", "1"), NewManifest(location=ELSEWHERE))
    reader = claim(flow.ledger, "clean", "1")
    assert [needed.version for needed in reader.inputs] == [1], "the evidence is there all the same"
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    assert_invariants(flow.psql)
    assert_no(flow, "load", "1", Code.LOCKED, "a consumer is reading raw/1 in place")
    flow.publish(reader)
    assert [claim.dataid for claim in claim_next(flow.ledger, "load")] == ["1"]


def test_a_version_is_not_published_over_another_one(flow: Flow) -> None:
    managed_input(flow, "1")
    old = file_of(flow, "raw/1").parent
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    again = claim(flow.ledger, "load", "1")
    with pytest.raises(InvalidManifest, match="holds an older version; write it into a folder of its own"):
        publish(flow.ledger, again, NewManifest(location=str(old)))
    flow.publish(again)
    assert flow.chunk("raw/1").version == 2


@pytest.mark.parametrize("of_its_own", ["a row of its own", "none"])
@pytest.mark.parametrize("status", ["PENDING", "RESUBMIT"])
def test_a_claim_takes_over_rows_that_another_job_left_of_its_output(flow: Flow, status: str, of_its_own: str) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", raw=external("raw"))
    announced_by_another = "insert into dataflow.datastatus values ('raw', 'other', '1', 'OUT', %s, now())"
    if of_its_own != "none":
        flow.announce("raw/1", "PENDING", "load")
    flow.type(announced_by_another, status)
    (taken,) = claim_next(flow.ledger, "load", 5)
    assert_invariants(flow.psql)
    flow.publish(taken)
    assert [row.jobid for row in rows_of(flow, "raw/1")] == ["load"]
    assert_go(flow, "clean", "1")


def test_a_version_taken_over_by_a_claim_stays_until_the_next_publish(flow: Flow) -> None:
    foreign_input(flow)
    announced(flow, "1", "old")
    flow.register("load: -> raw", "clean: raw -> tidy", raw=external("raw"))
    resubmit(flow.ledger, [key("raw/1")], by="ada")
    fail(flow.ledger, claim(flow.ledger, "load", "1"), "disk full")
    assert [(row.jobid, row.status, row.version) for row in rows_of(flow, "raw/1")] == [("load", "FAILED", 1)]


def test_a_forced_claim_takes_over_rows_that_another_job_left(flow: Flow) -> None:
    flow.register("load: -> raw", raw=external("raw"))
    flow.announce("raw/1", "READY", "other")
    flow.publish(force(flow.ledger, "load", "1", by="ada"))
    assert [(row.jobid, row.status) for row in rows_of(flow, "raw/1")] == [("load", "READY")]


def rows_of(flow: Flow, chunk: str) -> list[chunks.Chunk]:
    with flow.ledger.statement() as statement:
        return chunks.find(statement, [key(chunk)])


@pytest.mark.parametrize("mapping", [ALL, ListedChunks(lambda _: ["shared"])])
def test_a_shared_input_stays_locked_until_the_last_of_its_readers_ends(flow: Flow, mapping: ListedChunks) -> None:
    load, report = flow.register("load: -> codes", job("report: codes -> pages", codes=mapping))
    flow.plan(load, ["shared"])
    flow.produce("load", "shared")
    flow.plan(report, ["1", "2", "3"])
    (first, second) = claim_next(flow.ledger, "report", 2)
    third = claim(flow.ledger, "report", "3")
    assert flow.in_rows() == [("codes", "report", "shared")]
    flow.publish(third)
    assert flow.in_rows() == [("codes", "report", "shared")]
    fail(flow.ledger, first, "disk full")
    assert flow.in_rows() == [("codes", "report", "shared")]
    flow.publish(second)
    assert flow.in_rows() == []


def test_an_input_lock_ends_with_its_claim_even_if_the_chunk_was_replanned(flow: Flow) -> None:
    wanted = ["a"]
    load, report = flow.register(
        "load: -> codes", job("report: codes -> pages", codes=ListedChunks(lambda _: list(wanted)))
    )
    flow.plan(load, ["a", "b"])
    for dataid in ("a", "b"):
        flow.produce("load", dataid)
    flow.plan(report, ["1"])
    taken = claim(flow.ledger, "report", "1")
    wanted[:] = ["b"]
    flow.plan(report, ["1"])
    flow.publish(taken)
    assert flow.in_rows() == []


def test_an_input_lock_ends_with_its_claim_even_if_the_input_row_was_deleted(flow: Flow) -> None:
    load, report = flow.register("load: -> codes", job("report: codes -> pages", codes=ALL))
    flow.plan(load, ["a", "b"])
    for dataid in ("a", "b"):
        flow.produce("load", dataid)
    flow.plan(report, ["1"])
    taken = claim(flow.ledger, "report", "1")
    flow.type("delete from dataflow.datastatus where datasetid = 'codes' and dataid = 'b' and locktype = 'OUT'")
    flow.publish(taken)
    assert flow.in_rows() == []


def test_heal_keeps_the_input_lock_of_a_running_chunk_that_was_replanned(flow: Flow) -> None:
    wanted = ["a"]
    _, report = flow.register(
        "load: -> codes", job("report: codes -> pages", codes=ListedChunks(lambda _: list(wanted)))
    )
    for dataid in ("a", "b"):
        flow.produce("load", dataid)
    flow.plan(report, ["1"])
    taken = claim(flow.ledger, "report", "1")
    wanted[:] = ["b"]
    flow.plan(report, ["1"])
    assert heal(flow.ledger, rebuild=True).strays == 0
    assert flow.in_rows() == [("codes", "report", "a")]
    flow.publish(taken)


def test_a_listed_input_that_the_job_no_longer_has_is_ignored(flow: Flow) -> None:
    hours, codes = ListedChunks(lambda _: ["h"]), ListedChunks(lambda _: ["c"])
    both = job("days: hours, codes -> dates", hours=hours, codes=codes)
    (days,) = flow.register(both, hours=external("hours"), codes=external("codes"))
    flow.plan(days, ["1"])
    flow.announce("hours/h")
    flow.register(job("days: hours -> dates", hours=hours), hours=external("hours"))
    assert_invariants(flow.psql)
    assert {str(needed) for needed in assert_go(flow, "days", "1").inputs} == {"hours/h"}


def test_chunks_made_runnable_by_a_registration_are_notified_with_answers(flow: Flow) -> None:
    flow.register("load: -> raw")
    for dataid, content in (("1", "same"), ("2", "same"), ("3", None)):
        flow.produce("load", dataid, content)
    flow.type("listen dataflow_runnable")
    flow.register("load: -> raw", "clean: raw -> tidy")
    assert [notice.payload for notice in flow.psql.notifies(timeout=PATIENCE_SECONDS, stop_after=1)] == ["clean"]
    assert stored_verdicts(flow, "clean", "1")[-1].code is Code.WRONG_DATA
    assert stored_verdicts(flow, "clean", "3") == []


# ---- what a publication tells its consumers, without asking where nothing speaks against a yes

SOMEONE = "insert into dataflow.datastatus values"
NOT_ONE = '{"kind": "static", "keys": ["2"]}'


@pytest.mark.parametrize(
    ("before", "codes"),
    [
        ("select", {"1": None, "2": None}),
        (f"{SOMEONE} ('tidy', 'someone', '1', 'OUT', 'READY', now())", {"1": None, "2": None}),
        (f"{SOMEONE} ('tidy', 'someone', '1', 'OUT', 'RUNNING', now())", {"2": None}),
        (f"{SOMEONE} ('tidy', 'total', '1', 'IN', 'RUNNING', now())", {"1": "LOCKED", "2": None}),
        (f"{SOMEONE} ('sums', 'total', '1', 'OUT', 'PENDING', now())", {"1": None, "2": None}),
        (f"{SOMEONE} ('sums', 'total', '1', 'OUT', 'FAILED', now())", {"2": None}),
        (f"{SOMEONE} ('sums', 'someone', '1', 'IN', 'RUNNING', now())", {"1": "LOCKED", "2": None}),
        # Two things speak against 1, and the consumer must hear of 2 all the same.
        (
            f"{SOMEONE} ('tidy', 'total', '1', 'IN', 'RUNNING', now()), ('sums', 'other', '1', 'IN', 'RUNNING', now())",
            {"1": "LOCKED", "2": None},
        ),
        (
            "update dataflow.datastatus set manifest_id = null where jobid = 'load' and dataid = '1'",
            {"1": "WRONG_DATA", "2": None},
        ),
        (
            f"update dataflow.dataset set partitions = '{NOT_ONE}' where datasetid = 'tidy'",
            {"1": "WRONG_DATA", "2": None},
        ),
        (
            f"update dataflow.dataset set partitions = '{NOT_ONE}' where datasetid = 'sums'",
            {"1": "WRONG_DATA", "2": None},
        ),
        ("delete from dataflow.dataset where datasetid = 'sums'", {"1": "WRONG_DATA", "2": "WRONG_DATA"}),
        ("delete from dataflow.job where jobid = 'total' and itemtype = 'OUT'", {}),
        ("update dataflow.job_policy set ordered = true where jobid = 'total'", {"1": None, "2": "DATA_NOT_READY"}),
        (
            "insert into dataflow.job (jobid, itemtype, datasetid) values ('total', 'IN', 'raw')",
            {"1": None, "2": None},
        ),
        (
            "insert into dataflow.runnable (jobid, dataid, sort_key) values ('total', '1', dataflow.natural_key('1'))",
            {"1": None, "2": None},
        ),
    ],
)
def test_a_publish_gives_its_consumers_the_same_answers_as_the_gate(
    flow: Flow, before: str, codes: dict[str, str | None]
) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy", "total: tidy -> sums")
    for dataid in ("1", "2"):
        flow.produce("load", dataid)
    taken = claim_next(flow.ledger, "clean", 2)
    flow.type(before)
    flow.type("listen dataflow_runnable")
    publish_many(
        flow.ledger, [StagedClaim(claim=claim, manifests={claim.outputs[0]: flow.manifest(claim)}) for claim in taken]
    )
    told = {
        notice.payload
        for notice in flow.psql.notifies(timeout=PATIENCE_SECONDS if None in codes.values() else 0, stop_after=1)
    }
    found = flow.psql.execute("select dataid, blocked from dataflow.runnable where jobid = 'total'").fetchall()
    assert dict(found) == codes
    assert told == ({"total"} if None in codes.values() else set())
    assert_invariants(flow.psql)


def test_publishing_chunks_of_several_jobs_notifies_the_consumers_of_each(flow: Flow) -> None:
    flow.register("load: -> raw", "look: -> codes", "clean: raw -> tidy", "index: codes -> pages")
    taken = [claim(flow.ledger, jobid, dataid) for jobid in ("load", "look") for dataid in ("1", "2")]
    publish_many(
        flow.ledger, [StagedClaim(claim=claim, manifests={claim.outputs[0]: flow.manifest(claim)}) for claim in taken]
    )
    assert flow.runnable() == [("clean", "1"), ("clean", "2"), ("index", "1"), ("index", "2")]
    assert_invariants(flow.psql)


def test_outputs_of_a_partly_published_claim_are_remade_together(flow: Flow) -> None:
    flow.register("split: -> left, right", "count: left -> sums")
    taken = claim(flow.ledger, "split", "1")
    half = replace(taken, outputs=(DatasetId("left"),))
    with flow.ledger.statement() as statement:
        ledger_claims.publish(statement, [(half, {DatasetId("left"): flow.manifest(half)})])
    assert [flow.status("left/1"), flow.status("right/1")] == ["RESUBMIT", "RESUBMIT"]
    assert_invariants(flow.psql)


def test_a_failed_check_recorded_only_in_the_ledger_is_not_validated(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    taken = claim(flow.ledger, "load", "1")
    wrong = replace(flow.manifest(taken), checks=(CheckResult(name="rows", passed=False),))
    with flow.ledger.statement() as statement:
        ledger_claims.publish(statement, [(taken, {taken.outputs[0]: wrong})])
    assert ask_and_claim(flow, "clean", "1").code is Code.NOT_VALIDATED
    assert_invariants(flow.psql)


def test_two_chunks_published_together_with_equal_content_are_both_wrong_data(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    taken = claim_many(flow.ledger, "load", ["1", "2", "3"]).claims
    contents = {"1": "same", "2": "same", "3": "another"}
    publish_many(
        flow.ledger,
        [
            StagedClaim(claim=claim, manifests={claim.outputs[0]: flow.manifest(claim, content=contents[claim.dataid])})
            for claim in taken
        ],
    )
    assert flow.runnable() == [("clean", "1"), ("clean", "2"), ("clean", "3")]
    assert [claim.dataid for claim in claim_next(flow.ledger, "clean", 3)] == ["3"]
    assert_invariants(flow.psql)


# ---- the answers


def test_every_question_is_answered_even_if_the_first_answer_is_no(flow: Flow) -> None:
    flow.register(
        "clean: raw, codes -> tidy",
        raw=replace(external("raw"), foreign_ready="refused", partitions=daily("2024-01-01")),
    )
    flow.announce("raw/x")
    flow.announce("tidy/x", "HOLD")
    verdict = ask_and_claim(flow, "clean", "x")
    assert [(answer.question, answer.yes) for answer in verdict.answers] == [(question, False) for question in Question]
    for part in (
        "codes/x does not exist",
        "raw has no partition x",
        "raw/x became READY without a manifest",
        "tidy/x is HOLD",
    ):
        assert part in str(verdict)


def test_the_evidence_of_a_verdict_is_stored_with_it(flow: Flow) -> None:
    managed_input(flow, "1")
    (asked,) = gate(flow.ledger, "clean", ["1"])
    (kept,) = stored_verdicts(flow, "clean", "1")
    assert kept.inputs == asked.inputs
    assert [str(needed) for needed in kept.inputs] == ["raw/1 version 1"]
    assert kept.asked is not None
    assert abs(kept.asked - datetime.now(UTC)) < timedelta(minutes=5)


def test_an_unchanged_no_is_stored_once_and_a_changed_one_again(flow: Flow) -> None:
    foreign_input(flow)
    for _ in range(3):
        assert_no(flow, "clean", "1", Code.DATA_NOT_READY)
    assert len(stored_verdicts(flow, "clean", "1")) == 1
    flow.announce("raw/1", "RUNNING")
    for _ in range(3):
        assert_no(flow, "clean", "1", Code.DATA_NOT_READY)
    assert len(stored_verdicts(flow, "clean", "1")) == 2
    flow.type("update dataflow.datastatus set status = 'READY'")
    taken = claim(flow.ledger, "clean", "1")
    assert [verdict.claim_id for verdict in stored_verdicts(flow, "clean", "1")] == [None, None, taken.claim_id]


def test_answers_come_in_the_order_of_the_given_chunks(flow: Flow) -> None:
    foreign_input(flow)
    wanted = ["10", "9", "b", "a"]
    assert [verdict.dataid for verdict in gate(flow.ledger, "clean", wanted)] == wanted


def test_a_chunk_given_twice_is_answered_twice_and_stored_once(flow: Flow) -> None:
    foreign_input(flow)
    assert [verdict.dataid for verdict in gate(flow.ledger, "clean", ["9", "9"])] == ["9", "9"]
    assert len(stored_verdicts(flow, "clean", "9")) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "update dataflow.verdict set problems = '[]'",
        "update dataflow.verdict set claim_id = 1",
        "delete from dataflow.verdict",
        "truncate dataflow.verdict",
    ],
)
def test_an_operator_cannot_change_a_stored_answer(flow: Flow, statement: str) -> None:
    foreign_input(flow)
    assert_no(flow, "clean", "1", Code.DATA_NOT_READY)
    flow.type("set role dataflow_operator")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        flow.type(statement)
    assert len(stored_verdicts(flow, "clean", "1")) == 1


def test_a_claim_cannot_be_stored_with_a_no(flow: Flow) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="a_claim_has_five_yes"):
        flow.type("insert into dataflow.verdict (jobid, dataid, claim_id, problems) values ('clean', '1', 7, '[{}]')")


def test_a_reason_that_two_questions_share_is_said_once(flow: Flow) -> None:
    flow.register("load: -> raw", "clean: raw -> tidy")
    with pytest.raises(NoGo) as refused:
        claim(flow.ledger, "clean", "9")
    assert str(refused.value).count("nothing is published for raw/9") == 1
