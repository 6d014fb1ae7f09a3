"""A run of Dagster over chunks: each is claimed, computed, published and recorded for itself."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic

import dagster as dg
import pytest
from dagster._core.event_api import PartitionKeyFilter
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, udf
from pyspark.sql.types import StructType

from opendataflow_dagster import (
    ALL,
    ChunkContext,
    Policy,
    between,
    daily,
    dataset,
    external_dataset,
    like_previous,
    monthly,
    row_count,
    script_dataset,
    sql_dataset,
    within,
)
from opendataflow_dagster.engine import heartbeat
from opendataflow_dagster.engine.declaration import Declaration
from opendataflow_dagster.insight.story import story
from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.protocol.heal import heal
from opendataflow_dagster.protocol.throttle import pause, throttle
from tests.dagster_project import Project
from tests.effort import PATIENCE_SECONDS
from tests.factories import key

DAYS = daily("2024-01-01", "2024-01-30")


def day(number: int) -> str:
    return f"2024-01-{number:02}"


def source(bad: set[str] | None = None, seen: list[str] | None = None) -> Declaration:
    """A DataSet without inputs; the days in `bad` fail, and `bad` may be changed."""

    @dataset("raw", partitions=DAYS)
    def raw(context: ChunkContext) -> DataFrame:
        if seen is not None:
            seen.append(context.dataid)
        if bad and context.dataid in bad:
            raise ValueError("the source sent a word where a number should be")
        return context.spark.range(3).selectExpr("id", f"'{context.dataid}' as day")

    return raw


@dataset(partitions=DAYS, checks=[row_count(minimum=1)])
def clean(raw: DataFrame) -> DataFrame:
    return raw.where("id > 0")


def test_a_failed_step_and_the_ledger_have_the_lines_of_the_authors_code_and_no_others(project: Project) -> None:
    @udf("long")
    def halved(number: int) -> int:
        raise ZeroDivisionError("no halves today")  # in a worker

    @dataset(partitions=DAYS)
    def raised(context: ChunkContext) -> DataFrame:
        raise ValueError("a word where a number should be")  # at once

    @dataset(partitions=DAYS)
    def misspelt(context: ChunkContext) -> DataFrame:
        return context.spark.range(3).select("idd")  # in Spark

    @dataset(partitions=DAYS)
    def of_worker(context: ChunkContext) -> DataFrame:
        return context.spark.range(3).select(halved("id").alias("half"))

    @dataset(partitions=DAYS)  # while it is written
    def lazy(context: ChunkContext) -> DataFrame:
        return context.spark.range(3).select((lit(1) / col("id")).alias("share"))

    project.build(raised, misspelt, of_worker, lazy)
    code = Path(__file__).read_text().splitlines()
    for datasetid, comment, message in (
        ("raised", "# at once", "ValueError: a word where a number should be"),
        ("misspelt", "# in Spark", "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
        ("of_worker", "# in a worker", "ZeroDivisionError: no halves today"),
        ("lazy", "# while it is written", "[DIVIDE_BY_ZERO]"),
    ):
        said = project.launch(datasetid, day(1)).said
        line = next(number for number, text in enumerate(code, 1) if text.endswith(comment))
        assert f'tests/dagster/test_run.py", line {line}, ' in said, datasetid
        assert message in said.partition("Traceback")[2]
        (attempt,) = story(project.flow.ledger, key(f"{datasetid}/{day(1)}")).attempts
        assert attempt.traceback is not None
        assert attempt.traceback in said
        for frame in ("opendataflow_dagster", "pyspark/", "py4j", "java", "concurrent/futures"):
            assert frame not in attempt.traceback, attempt.traceback


def records(told: object) -> list[dict[str, object]]:
    assert isinstance(told, dg.TableMetadataValue)
    return [dict(record.data) for record in told.records]


def test_a_launched_partition_is_published_and_materialized_with_its_story(project: Project) -> None:
    project.build(source(), clean)

    assert project.launch("raw", day(1)).success
    assert project.launch("clean", day(1)).success

    assert project.flow.status(f"clean/{day(1)}") == "READY"
    ((dataid, told),) = project.materializations("clean")
    assert dataid == day(1)
    assert (told["dagster/row_count"], told["version"]) == (2, 1)
    assert told["inputs"] == f"raw/{day(1)} version 1"
    assert str(told["location"]).startswith(str(project.flow.root / "clean"))
    assert all(
        f"| {question} | yes |" in str(told["answers"]) for question in ("READY", "RIGHT", "PLACED", "VALID", "SAFE")
    )
    assert records(told["checks"]) == [
        {"check": "row_count", "result": "passed", "severity": "error", "figures": "2 rows, expected at least 1"}
    ]
    assert isinstance(told["bytes"], int)
    assert isinstance(told["duration_s"], float)


def test_a_chunk_whose_input_is_not_ready_ends_failed_with_its_code_and_is_never_success(project: Project) -> None:
    project.build(source(), clean)

    done = project.launch("clean", day(1))

    assert not done.success
    assert "DATA_NOT_READY" in done.said
    assert project.materializations("clean") == []
    assert project.shown("clean", [day(1)]) == {day(1): "failed"}
    assert project.flow.status(f"clean/{day(1)}") == "PENDING", "it runs by itself when its input is there"


def test_of_many_chunks_the_failed_ones_are_known_alone_and_what_succeeded_stays(project: Project) -> None:
    bad = {day(2), day(4)}
    project.build(source(bad))
    days = [day(number) for number in range(1, 7)]

    done = project.launch_range("raw", day(1), day(6))

    assert not done.success
    assert done.said.startswith("2 of 6 chunks of raw were not made: ")
    assert "a word where a number should be" in done.said
    shown = project.shown("raw", days)
    assert {dataid for dataid, word in shown.items() if word == "failed"} == bad
    assert {dataid for dataid, word in shown.items() if word == "materialized"} == set(days) - bad
    assert project.flow.status(f"raw/{day(2)}") == "FAILED"
    # The repaired ones run again; the others are older than this request, too, and it names only the two.
    bad.clear()
    assert project.launch_range("raw", day(2), day(2)).success
    assert project.shown("raw", [day(2)]) == {day(2): "materialized"}


def test_every_version_gives_exactly_one_materialization(project: Project) -> None:
    project.build(source(), clean)

    project.launch_range("raw", day(1), day(5))
    project.launch_as_sensor("clean", [day(1), day(3), day(5)])

    for name in ("raw", "clean"):
        assert sorted(dataid for dataid, _ in project.materializations(name)) == [day(number) for number in range(1, 6)]


def checked(bad: str) -> Declaration:
    """Row counts are right except of one day, and every second id is above a bound that only warns."""

    @dataset(partitions=DAYS, checks=[row_count(minimum=2), between("id", 0, 1, severity="warn")])
    def counted(context: ChunkContext) -> DataFrame:
        return context.spark.range(1 if context.dataid == bad else 3)

    return counted


def results(project: Project, *dataids: str) -> dict[str, list[tuple[str, bool, str, str | None, bool]]]:
    """What Dagster's UI shows for each chunk: check, result, severity, figures, and whether that is current."""
    storage = project.instance.event_log_storage
    names = ("row_count", "between(id, 0, 1)")
    keys = [dg.AssetCheckKey(dg.AssetKey("counted"), name) for name in names]
    current = {
        (info.check_key.name, info.partition_key): info.is_current
        for info in storage.get_asset_check_partition_info(keys)
    }
    return {
        dataid: [
            (key.name, found.passed, found.severity.value, found.description, current[key.name, dataid])
            for key in keys
            for record in storage.get_asset_check_execution_history(
                key, limit=1, partition_filter=PartitionKeyFilter(key=dataid)
            )
            if (found := record.evaluation) is not None
        ]
        for dataid in dataids
    }


@pytest.mark.parametrize("by", ["backfill", "sensor"])
def test_every_check_has_its_result_figures_and_severity_for_each_chunk_in_dagster(project: Project, by: str) -> None:
    definitions = project.build(checked(bad=day(2)))
    days = [day(1), day(2), day(3)]

    if by == "backfill":
        project.launch_range("counted", day(1), day(3))
    else:
        project.launch_as_sensor("counted", days)

    keys = definitions.resolve_asset_graph().asset_check_keys
    assert {key.to_user_string() for key in keys} == {"counted:row_count", "counted:between(id, 0, 1)"}
    warned = ("between(id, 0, 1)", False, "WARN", "1 of 3 rows fails between(id, 0, 1), e.g. 2", True)
    good = [("row_count", True, "ERROR", "3 rows, expected at least 2", True), warned]
    assert results(project, *days) == {
        day(1): good,
        day(2): [
            ("row_count", False, "ERROR", "1 row, expected at least 2", True),
            ("between(id, 0, 1)", True, "WARN", "0 of 1 row fail", True),
        ],
        day(3): good,
    }
    assert [project.flow.status(f"counted/{dataid}") for dataid in days] == ["READY", "FAILED", "READY"]


def test_a_new_version_shows_the_results_of_its_own_checks(project: Project) -> None:
    project.build(checked(bad=day(2)))
    project.launch("counted", day(1))
    project.launch("counted", day(2))

    project.build(checked(bad=day(1)))
    project.launch("counted", day(1))
    project.launch("counted", day(2))

    shown = results(project, day(1), day(2))
    assert shown[day(1)][0] == ("row_count", False, "ERROR", "1 row, expected at least 2", True)
    assert shown[day(2)][0] == ("row_count", True, "ERROR", "3 rows, expected at least 2", True)
    assert project.flow.chunk(f"counted/{day(1)}").version == 1, "the version before stays current"


def test_a_warning_is_recorded_and_consumers_accept_the_version(project: Project) -> None:
    @dataset(partitions=DAYS)
    def consumer(counted: DataFrame) -> DataFrame:
        return counted

    project.build(checked(bad=""), consumer)
    assert project.launch("counted", day(1)).success
    assert project.launch("consumer", day(1)).success

    (_, told), *_ = project.materializations("counted")
    assert [row["result"] for row in records(told["checks"])] == ["passed", "warning"]


def test_a_request_that_is_satisfied_shows_how_its_version_was_made(project: Project) -> None:
    """Dagster has planned the chunk for the second run, too: without another event it would show as failed."""
    project.build(source({day(2)}))

    project.launch_again(project.launch_range("raw", day(1), day(2)), **{"dagster/is_resume_retry": "true"})

    assert project.shown("raw", [day(1), day(2)]) == {day(1): "materialized", day(2): "failed"}
    (_, told), (_, before) = project.materializations("raw")
    assert told["note"] == "it was already READY when its turn came; nothing was run"
    assert (told["version"], told["answers"], told["attempt"]) == (1, before["answers"], before["attempt"])
    assert isinstance(told["duration_s"], float)


def test_a_sensor_that_finds_a_chunk_ready_says_nothing_twice(project: Project) -> None:
    project.build(source())
    project.launch("raw", day(2))

    assert project.launch_as_sensor("raw", [day(1), day(2)]).success

    assert sorted(dataid for dataid, _ in project.materializations("raw")) == [day(1), day(2)]
    assert project.shown("raw", [day(2)]) == {day(2): "materialized"}


def test_a_run_counts_what_it_took_along(project: Project) -> None:
    @dataset(partitions=DAYS)
    def failing(raw: DataFrame) -> DataFrame:
        raise ValueError("no")

    project.build(source(), failing)
    project.launch_range("raw", day(1), day(3))

    done = project.launch_as_sensor("failing", [day(2)])

    assert done.said.startswith("3 of 3 chunks of failing were not made")
    assert project.labels(done.run_id)[:2] == ("3", f"{day(1)}..{day(3)}")


def test_a_run_of_a_range_or_a_backfill_says_how_many_chunks_and_which(project: Project) -> None:
    project.build(source(), clean)

    assert project.labels(project.launch_range("raw", day(1), day(3)).run_id) == ("3", f"{day(1)}..{day(3)}", None)
    assert project.labels(project.launch("raw", day(4)).run_id) == ("1", day(4), day(4))
    assert project.labels(project.launch_as_sensor("clean", [day(3), day(1)]).run_id)[2] is None


def test_a_run_of_the_sensor_takes_along_what_becomes_runnable_meanwhile(project: Project) -> None:
    """One Spark for all of it, instead of one for the chunks of each tick."""
    seen: list[str] = []
    project.build(source(seen=seen), clean)
    project.launch_range("raw", day(1), day(3))

    assert project.launch_as_sensor("clean", [day(2)]).success

    assert sorted(dataid for dataid, _ in project.materializations("clean")) == [day(1), day(2), day(3)]


def test_chunks_that_a_sensor_names_show_as_failed_when_they_fail(project: Project) -> None:
    project.build(source({day(5)}))

    done = project.launch_as_sensor("raw", [day(1), day(5), day(9)])

    assert not done.success
    shown = project.shown("raw", [day(1), day(5), day(9), day(10)])
    assert shown == {day(1): "materialized", day(5): "failed", day(9): "materialized", day(10): "missing"}


def test_materializing_a_ready_chunk_again_makes_a_new_version_and_its_consumers_are_out_of_date(
    project: Project,
) -> None:
    project.build(source(), clean)
    project.launch("raw", day(1))
    project.launch("clean", day(1))

    assert project.launch("raw", day(1)).success

    assert project.flow.chunk(f"raw/{day(1)}").version == 2
    with project.flow.ledger.statement() as statement:
        made_from = chunks.current_manifest(statement, key(f"clean/{day(1)}"))
        events = chunks.history(statement, key(f"raw/{day(1)}"))
    assert made_from is not None
    assert [source.version for source in made_from.inputs] == [1], "clean says from which version it was made"
    asked = [event for event in events if event.new_status == "RESUBMIT"]
    assert len(asked) == 1
    assert "dagster run" in (asked[0].actor or ""), "the history names who asked for it"


def test_a_sensor_never_runs_a_ready_chunk_again(project: Project) -> None:
    seen: list[str] = []
    project.build(source(seen=seen))
    project.launch("raw", day(1))

    assert project.launch_as_sensor("raw", [day(1)]).success

    assert seen == [day(1)]
    assert project.flow.chunk(f"raw/{day(1)}").version == 1


def test_a_person_who_executes_a_run_of_the_sensor_again_resubmits_what_failed_in_it(project: Project) -> None:
    bad = {day(2)}
    project.build(source(bad))
    failed = project.launch_as_sensor("raw", [day(1), day(2)])
    bad.clear()
    assert "LOCKED" in project.launch_as_sensor("raw", [day(2)]).said, "a sensor resubmits nothing"

    again = project.launch_again(failed)

    assert again.success
    assert project.flow.chunk(f"raw/{day(1)}").version == 2
    assert project.flow.status(f"raw/{day(2)}") == "READY"


def test_a_run_that_is_executed_again_from_failure_makes_only_what_is_not_ready(project: Project) -> None:
    bad = {day(2)}
    project.build(source(bad))
    failed = project.launch_as_sensor("raw", [day(1), day(2)])
    bad.clear()

    again = project.launch_again(failed, **{"dagster/is_resume_retry": "true"})

    assert again.success
    assert project.flow.chunk(f"raw/{day(1)}").version == 1
    assert project.flow.chunk(f"raw/{day(2)}").version == 1


def test_two_triggers_at_once_publish_one_version(project: Project) -> None:
    """The second comes while the first computes; it waits, and finds its request satisfied."""
    computing, second_is_there = threading.Event(), threading.Event()

    @dataset(partitions=DAYS)
    def slow(context: ChunkContext) -> DataFrame:
        computing.set()
        assert second_is_there.wait(PATIENCE_SECONDS)
        return context.spark.range(1)

    project.build(slow)
    first: list[bool] = []
    thread = threading.Thread(target=lambda: first.append(project.launch("slow", day(1)).success))
    thread.start()
    assert computing.wait(PATIENCE_SECONDS)
    # Once the other's request is recorded, it can only wait or be refused.
    threading.Timer(2.0, second_is_there.set).start()
    second = project.launch("slow", day(1))
    thread.join()

    assert first == [True]
    assert second.success or "LOCKED" in second.said
    assert project.flow.chunk(f"slow/{day(1)}").version == 1


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "returned nothing, not a Spark DataFrame"),
        ([1, 2], "returned list, not a Spark DataFrame"),
        (dg.MaterializeResult(), "returned MaterializeResult, not a Spark DataFrame; return the DataFrame itself"),
        (dg.Output(1), "returned Output, not a Spark DataFrame; return the DataFrame itself"),
    ],
    ids=["nothing", "a list", "a MaterializeResult", "an Output"],
)
def test_a_function_that_does_not_return_a_dataframe_is_refused(project: Project, returned: object, said: str) -> None:
    @dataset(partitions=DAYS)
    def wrong() -> object:
        return returned

    project.build(wrong)

    done = project.launch("wrong", day(1))

    assert not done.success
    assert said in done.said
    assert project.flow.status(f"wrong/{day(1)}") == "FAILED"
    assert project.materializations("wrong") == []


def test_a_terminated_run_gives_its_claims_back_at_once(project: Project) -> None:
    class Terminated(BaseException):
        """What Dagster raises in a run that a person terminates is no Exception."""

    @dataset(partitions=DAYS, policy=Policy(lease=timedelta(hours=1)))
    def ended(context: ChunkContext) -> DataFrame:
        raise Terminated

    project.build(ended, chunks_at_once=1)

    assert not project.launch_range("ended", day(1), day(4)).success

    statuses = {project.flow.status(f"ended/{day(number)}") for number in range(1, 5)}
    assert statuses == {"RESUBMIT"}
    assert project.flow.psql.execute("select count(*) from dataflow.job_run where ended is null").fetchone() == (0,)


def test_a_run_that_a_person_cancels_stops_and_nothing_of_it_runs_again_by_itself(project: Project) -> None:
    class Terminated(BaseException):
        pass

    @dataset(partitions=DAYS, policy=Policy(retry_on=".*", retry_delay=timedelta(0)))
    def ended(context: ChunkContext) -> DataFrame:
        if context.dataid == day(2):
            (run,) = project.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
            project.instance.report_run_canceling(run)
            raise Terminated
        return context.spark.range(1)

    project.build(ended, chunks_at_once=1)

    done = project.launch_range("ended", day(1), day(20))

    assert not done.success
    assert project.flow.status(f"ended/{day(1)}") == "READY"
    for number in range(2, 21):
        chunk = project.flow.chunk(f"ended/{day(number)}")
        assert (chunk.status, chunk.reason) == ("FAILED", f"cancelled by a person in Dagster (run {done.run_id})")
    assert heal(project.flow.ledger).retried == ()
    # Whoever asks for it again gets it.
    assert project.launch("ended", day(3)).success


def test_a_chunk_that_ends_the_run_costs_those_that_waited_for_their_turn_no_retry(project: Project) -> None:
    """It fails alone at its attempt cap; the others are made, as soon as it is out of the way."""

    class Killed(BaseException):
        pass

    @dataset(partitions=DAYS, policy=Policy(max_attempts=2))
    def poisoned(context: ChunkContext) -> DataFrame:
        if context.dataid == day(1):
            raise Killed
        return context.spark.range(1)

    project.build(poisoned, chunks_at_once=1)
    project.launch_range("poisoned", day(1), day(4))
    project.launch_as_sensor("poisoned", [day(number) for number in range(1, 5)])

    assert project.flow.status(f"poisoned/{day(1)}") == "FAILED"
    assert {project.flow.status(f"poisoned/{day(number)}") for number in (2, 3, 4)} == {"RESUBMIT"}


def test_a_claim_that_was_lost_meanwhile_publishes_nothing(project: Project) -> None:
    @dataset(partitions=DAYS)
    def revoked(context: ChunkContext) -> DataFrame:
        project.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'revoked'")
        return context.spark.range(1)

    project.build(revoked)

    done = project.launch("revoked", day(1))

    assert not done.success
    assert "CLAIM_LOST" in done.said
    assert project.flow.status(f"revoked/{day(1)}") == "RESUBMIT"
    assert project.materializations("revoked") == []


def test_leases_are_renewed_while_the_work_goes_on(project: Project) -> None:
    """The work takes longer than the lease; without renewal it could not be published."""

    lease = timedelta(seconds=5)

    def lease_until() -> datetime:
        until = project.flow.chunk(f"long/{day(1)}").lease_until
        assert until is not None
        return until

    @dataset(partitions=DAYS, policy=Policy(lease=lease))
    def long(context: ChunkContext) -> DataFrame:
        first, give_up = lease_until(), monotonic() + PATIENCE_SECONDS
        while lease_until() <= first + lease:
            assert monotonic() < give_up, "the lease was not renewed"
        return context.spark.range(1)

    project.build(long)

    assert project.launch("long", day(1)).success


def test_a_run_says_that_it_lives_while_the_work_goes_on(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_EVERY_SECONDS", 0.05)
    heard: list[bool] = []

    @dataset(partitions=DAYS)
    def long(context: ChunkContext) -> DataFrame:
        until = monotonic() + PATIENCE_SECONDS
        while not heard and monotonic() < until:
            heard.extend([True] * project.flow.type("select from dataflow.job_run where heard > started"))
        return context.spark.range(1)

    project.build(long)

    assert project.launch("long", day(1)).success
    assert heard


def test_a_limit_is_kept_while_it_runs_and_a_paused_job_is_refused(project: Project) -> None:
    running, most = [0], [0]
    lock = threading.Lock()

    @dataset(partitions=DAYS, concurrency=1)
    def limited(context: ChunkContext) -> DataFrame:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        frame = context.spark.range(1).selectExpr("id", f"'{context.dataid}' as day")
        with lock:
            running[0] -= 1
        return frame

    project.build(limited, chunks_at_once=2)
    assert project.launch_range("limited", day(1), day(3)).success
    assert most == [1]

    throttle(project.flow.ledger, "limited", None, by="operator")
    project.build(limited)
    assert project.flow.psql.execute("select concurrency from dataflow.job_control").fetchone() == (None,)

    pause(project.flow.ledger, "limited", by="operator", reason="the source is down")
    done = project.launch("limited", day(4))
    assert not done.success
    assert "LOCKED" in done.said
    assert "paused" in done.said


def test_a_job_that_is_paused_and_limited_is_refused_and_its_run_ends(project: Project) -> None:
    project.build(dataset("both", partitions=DAYS, concurrency=1)(lambda: None))
    pause(project.flow.ledger, "both", by="operator", reason="the source is down")

    done = project.launch_range("both", day(1), day(3))

    assert done.said.count("has been paused since") == 3


def test_a_chunk_is_compared_with_the_nearest_one_before_that_was_made_whatever_that_does_now(project: Project) -> None:
    rows = {day(1): 100, day(2): 110, day(6): 10}

    @dataset(partitions=DAYS, checks=[like_previous(rows_within=0.2)])
    def steady(context: ChunkContext) -> DataFrame:
        return context.spark.range(rows[context.dataid])

    project.build(steady)

    assert project.launch("steady", day(1)).success, "there is nothing to compare the first with"
    assert project.launch("steady", day(2)).success
    # Four days before it were never made, and the nearest that was is made anew.
    project.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = %s", day(2))
    assert "10 rows, previously 110 (-90.9%" in project.launch("steady", day(6)).said
    rows[day(1)] = 10
    assert "10 rows, previously 100 (-90.0%" in project.launch("steady", day(1)).said, "with its own version before"


def test_inputs_of_all_chunks_and_of_a_month_are_read_as_one(project: Project) -> None:
    months = monthly("2024-01-01", "2024-01-01")
    short = daily("2024-01-01", "2024-01-03")

    @dataset(partitions=short)
    def days(context: ChunkContext) -> DataFrame:
        return context.spark.range(2).selectExpr("id", f"'{context.dataid}' as day")

    @dataset(partitions=months, mapping={"days": within(months, short)})
    def month(days: DataFrame) -> DataFrame:
        return days.groupBy("day").count()

    @dataset(partitions=months, mapping={"days": ALL}, checks=[row_count(6, 6)])
    def everything(days: DataFrame) -> DataFrame:
        return days

    project.build(days, month, everything)
    assert "DATA_NOT_READY" in project.launch("month", "2024-01-01").said
    assert project.launch_range("days", day(1), day(3)).success

    assert project.launch("month", "2024-01-01").success
    assert project.launch("everything", "2024-01-01").success

    ((_, told),) = project.materializations("month")
    assert told["dagster/row_count"] == 3


def test_sql_reads_tracked_datasets_and_knows_its_chunk(project: Project) -> None:
    summary = sql_dataset(
        "with big as (select * from raw where id > 0) select count(*) as rows, :dataid as day from big",
        "summary",
        partitions=DAYS,
    )
    project.build(source(), summary)
    project.launch_range("raw", day(1), day(2))

    assert project.launch_range("summary", day(1), day(2)).success

    assert sorted(dataid for dataid, _ in project.materializations("summary")) == [day(1), day(2)]


def test_an_unchanged_script_makes_its_chunks_and_its_exit_code_is_recorded(project: Project) -> None:
    script = project.flow.root.parent / "loadbob.sh"
    script.write_text(
        "#!/bin/sh\n"
        'test -n "$raw_location" || exit 3\n'
        'test "$dataid" != 2024-01-02 || { echo the disk is full >&2; exit 7; }\n'
        'mkdir -p "$loadbob_location" && echo "$dataid $greeting" > "$loadbob_location/part-0"\n'
    )
    script.chmod(0o755)
    loadbob = script_dataset(script, partitions=DAYS, inputs={"raw": "raw"}, environment={"greeting": "hello"})
    project.build(source(), loadbob)
    project.launch_range("raw", day(1), day(2))

    done = project.launch_range("loadbob", day(1), day(2))

    assert not done.success
    assert "1 of 2 chunks of loadbob were not made: 2024-01-02: FAILED: exit code 7: the disk is full" in done.said
    ((dataid, told),) = project.materializations("loadbob")
    assert dataid == day(1)
    assert told["inputs"] == f"raw/{day(1)} version 1"
    assert (Path(str(told["location"])) / "part-0").read_text() == f"{day(1)} hello\n"


def test_an_external_chunk_without_a_manifest_is_read_as_declared_or_refused_with_the_next_step(
    project: Project,
) -> None:
    landing = external_dataset("landing", read=lambda spark, dataid: spark.range(5).selectExpr(f"'{dataid}' as day"))
    unreadable = external_dataset("unreadable")

    @dataset(inputs={"source": "landing"})
    def landed(source: DataFrame) -> DataFrame:
        return source

    @dataset(inputs={"source": "unreadable"})
    def lost(source: DataFrame) -> DataFrame:
        return source

    project.build(landing, unreadable, landed, lost)
    project.instance.add_dynamic_partitions("landed", ["delivery 1"])
    project.instance.add_dynamic_partitions("lost", ["delivery 1"])
    project.flow.announce("landing/delivery 1")
    project.flow.announce("unreadable/delivery 1")

    assert project.launch("landed", "delivery 1").success
    refused = project.launch("lost", "delivery 1")

    assert not refused.success
    assert "external_dataset('unreadable', read=...)" in refused.said


def test_the_sensor_makes_several_chunks_without_declared_partitions_in_one_run(project: Project) -> None:
    landing = external_dataset("landing", read=lambda spark, dataid: spark.range(5).selectExpr(f"'{dataid}' as day"))

    @dataset(inputs={"source": "landing"})
    def landed(source: DataFrame) -> DataFrame:
        return source

    project.build(landing, landed)
    deliveries = ["delivery 1", "delivery 2"]
    for delivery in deliveries:
        project.flow.announce(f"landing/{delivery}")
    project.instance.add_dynamic_partitions("landed", deliveries)

    done = project.launch_as_sensor("landed", deliveries)

    assert done.success, done.said
    assert project.labels(done.run_id) == ("2", "delivery 1..delivery 2", None)
    assert project.shown("landed", deliveries) == dict.fromkeys(deliveries, "materialized")


def test_skipped_inputs_that_pass_have_no_rows(project: Project) -> None:
    months, short = monthly("2024-01-01", "2024-01-01"), daily("2024-01-01", "2024-01-02")

    @dataset(partitions=short, skipped_input="passes", schema=StructType().add("id", "long", nullable=False))
    def days(context: ChunkContext) -> DataFrame:
        return context.spark.range(3)

    @dataset(partitions=short, skipped_input="passes")
    def bare(context: ChunkContext) -> DataFrame:
        return context.spark.range(3)

    @dataset(partitions=short)
    def counted(days: DataFrame) -> DataFrame:
        return days.groupBy().count()

    @dataset(partitions=short)
    def lost(bare: DataFrame) -> DataFrame:
        return bare

    @dataset(partitions=months, mapping={"days": within(months, short)}, checks=[row_count(3, 3)])
    def month(days: DataFrame) -> DataFrame:
        return days

    project.build(days, bare, counted, lost, month)
    project.launch("days", day(1))
    for name in ("days", "bare"):
        project.flow.type("insert into dataflow.datastatus values (%s, %s, %s, 'OUT', 'SKIPPED')", name, name, day(2))

    assert project.launch("counted", day(2)).success
    assert project.launch("month", day(1)).success
    assert "declare the schema of bare" in project.launch("lost", day(2)).said

    ((_, told),) = project.materializations("counted")
    assert told["inputs"] == f"days/{day(2)}"


def test_a_plain_asset_of_dagster_reads_chunks_through_the_same_io_manager(project: Project) -> None:
    seen: list[int] = []

    @dg.asset(
        partitions_def=dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-01-31"),
        ins={"raw": dg.AssetIn(input_manager_key="opendataflow")},
    )
    def plain(raw):  # type: ignore[no-untyped-def]
        seen.append(raw.count())

    definitions = project.build(source(), assets=[plain])
    project.launch_range("raw", day(1), day(2))
    raw = next(asset for asset in definitions.assets or () if isinstance(asset, dg.AssetsDefinition))

    def read(dataid: str) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [raw, plain],
            resources=definitions.resources,
            selection=[plain],
            partition_key=dataid,
            instance=project.instance,
            raise_on_error=False,
        )

    assert read(day(2)).success
    assert seen == [3]

    (failure,) = read(day(9)).get_step_failure_events()
    assert "not READY: raw/2024-01-09" in str(failure.step_failure_data.error)
