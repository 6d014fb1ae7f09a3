"""The sensors: what they start, what they leave alone, what they say, and what they bring together again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from opendataflow_dagster import LedgerResource, Policy, daily, dataset, external_dataset, ranges, row_count, within
from opendataflow_dagster.engine.connections import close_ledgers
from opendataflow_dagster.engine.dataset_graph import DatasetGraph
from opendataflow_dagster.model.errors import LedgerUnavailable
from opendataflow_dagster.model.job import ListedChunks
from opendataflow_dagster.model.manifest import CheckResult
from opendataflow_dagster.model.partitions import monthly
from opendataflow_dagster.orchestrator import silent_runs
from opendataflow_dagster.orchestrator.files_sensor import files_sensor
from opendataflow_dagster.orchestrator.heal_sensor import heal_sensor
from opendataflow_dagster.orchestrator.planning_sensor import planning_sensor
from opendataflow_dagster.orchestrator.readiness_sensor import readiness_sensor
from opendataflow_dagster.orchestrator.run_config import dataids_in
from opendataflow_dagster.orchestrator.run_status_sensors import release_claims
from opendataflow_dagster.orchestrator.silent_runs import SilentRuns
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.job_run import begin_run, end_run, record_heartbeat
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.register import plan
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.request import request
from opendataflow_dagster.protocol.throttle import pause, resume, throttle
from tests.dagster_project import Project
from tests.statements import count_statements

DAYS = daily("2024-01-01", "2024-01-31")


def nothing() -> None: ...


def consume(raw: object) -> None: ...


raw = dataset("raw", partitions=DAYS, checks=[row_count(1)])(nothing)
tidy = dataset("tidy", partitions=DAYS)(consume)


def day(number: int) -> str:
    return f"2024-01-{number:02}"


def graph_of(project: Project) -> DatasetGraph:
    assert project.graph is not None
    return project.graph


def plan_days(project: Project, *numbers: int, jobid: str = "raw") -> None:
    (job,) = [made for _, made in graph_of(project).produced if made.jobid == jobid]
    plan(project.flow.ledger, job, [day(number) for number in numbers])


def tick(project: Project, sensor: dg.SensorDefinition | None = None, cursor: str | None = None) -> SensorExecutionData:
    sensor = sensor or readiness_sensor(graph_of(project))
    context = dg.build_sensor_context(
        instance=project.instance,
        cursor=cursor,
        definitions=project.definitions,
        resources={"ledger": LedgerResource(patience_seconds=1)},
    )
    return sensor.evaluate_tick(context)


def heal(project: Project, cursor: str | None = None) -> SensorExecutionData:
    return tick(project, heal_sensor(graph_of(project), grace=timedelta(0)), cursor)


def in_list(done: SensorExecutionData) -> str:
    """What the list of ticks shows of it: the cursor, whose last line is the sensor's own."""
    return (done.cursor or "").rpartition("\n")[0]


def queue(project: Project, request: dg.RunRequest) -> dg.DagsterRun:
    """What the daemon does with a request, except that nobody starts the run."""
    assert project.definitions is not None
    assert request.job_name is not None
    return project.instance.create_run_for_job(
        project.definitions.resolve_job_def(request.job_name),
        run_config=request.run_config,
        tags={**request.tags, "dagster/sensor_name": "readiness"},
        status=dg.DagsterRunStatus.NOT_STARTED,
    )


# --- readiness


def test_what_can_run_of_all_jobs_starts_in_few_runs_resubmitted_first(project: Project) -> None:
    project.build(raw, tidy)
    plan_days(project, 1, 2, 3, 4)
    project.flow.produce("raw", day(1))
    project.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = %s", day(4))

    done = tick(project)

    started = {request.job_name: request.run_config for request in done.run_requests or ()}
    assert started == {
        "raw": {"ops": {"make_raw": {"config": {"dataids": [day(4), day(2), day(3)]}}}},
        "tidy": {"ops": {"make_tidy": {"config": {"dataids": [day(1)]}}}},
    }
    assert all(request.run_key is None for request in done.run_requests or ()), (
        "a key would dedupe a later RESUBMIT away"
    )


def test_a_run_says_how_many_chunks_it_has_and_which_range(project: Project) -> None:
    project.build(raw)
    plan_days(project, 1, 2, 3, 10)
    project.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = %s", day(10))

    done = tick(project)
    (request,) = done.run_requests or ()

    assert project.labels(queue(project, request).run_id) == ("4", f"{day(1)}..{day(10)}", None)
    assert in_list(done) == f"raw: 4 chunks {day(1)}..{day(10)}"


def test_a_run_of_one_chunk_is_labelled_with_its_partition(project: Project) -> None:
    project.build(raw)
    plan_days(project, 7)

    done = tick(project)
    (request,) = done.run_requests or ()

    assert project.labels(queue(project, request).run_id) == ("1", day(7), day(7))
    assert in_list(done) == f"raw: 1 chunk {day(7)}"


def test_the_list_of_ticks_shows_the_reason_of_each_and_the_sensor_keeps_its_state(project: Project) -> None:
    project.build(raw, dataset("also", partitions=DAYS, planned=True)(lambda: None))
    graph = graph_of(project)

    assert in_list(tick(project)) == "nothing can run: all is READY, or waits"
    planned = tick(project, planning_sensor(graph))
    assert in_list(planned) == "planned: 31 chunks of 1 job"
    assert in_list(tick(project, planning_sensor(graph), planned.cursor)) == "nothing new to plan"
    pause(project.flow.ledger, "also", by="operator", reason="the source is down")
    assert in_list(tick(project)).startswith("also: 31 runnable, but the job is paused")
    assert in_list(tick(project, files_sensor(graph))) == "files gone: 0"

    plan_days(project, 1)
    project.flow.produce("raw", day(1))
    healed = heal(project)
    assert in_list(healed).startswith("1 reported")
    assert in_list(heal(project, healed.cursor)) == "nothing to heal"


def test_what_a_queued_run_has_is_not_started_again(project: Project) -> None:
    project.build(raw)
    plan_days(project, 1, 2)
    (request,) = tick(project).run_requests or ()
    queue(project, request)

    again = tick(project)
    assert again.run_requests == []
    assert "raw: 2 runnable, already assigned to a run or a backfill" in (again.skip_message or "")

    plan_days(project, 3)
    assert "raw: 1 runnable, left to a running run" in (tick(project).skip_message or "")
    project.flow.type("update dataflow.runnable set since = now() - interval '5 minutes'")
    (more,) = tick(project).run_requests or ()
    assert dataids_in(more.run_config) == {day(3)}


def test_a_job_has_at_most_so_many_runs_with_so_many_chunks(project: Project) -> None:
    project.build(raw)
    plan_days(project, *range(1, 11))

    requests = tick(project, readiness_sensor(graph_of(project), chunks_per_run=3, runs_per_job=2)).run_requests

    assert [len(dataids_in(request.run_config)) for request in requests or ()] == [3, 3]


def test_a_paused_or_full_job_starts_nothing_and_the_tick_says_why(project: Project) -> None:
    project.build(raw)
    plan_days(project, 1, 2)

    pause(project.flow.ledger, "raw", by="operator", reason="the source is down")
    assert "raw: 2 runnable, but the job is paused" in (tick(project).skip_message or "")
    resume(project.flow.ledger, "raw", by="operator")
    throttle(project.flow.ledger, "raw", 1, by="operator")
    claim(project.flow.ledger, "raw", day(1))
    assert "the job is at its concurrency limit (1 of 1 running)" in (tick(project).skip_message or "")
    throttle(project.flow.ledger, "raw", 2, by="operator")
    assert len(tick(project).run_requests or ()) == 1


def test_the_skip_reason_says_what_blocks(project: Project) -> None:
    project.build(raw, tidy)
    plan_days(project, 1, 2)
    fail(project.flow.ledger, claim(project.flow.ledger, "raw", day(1)), "no such mount")
    project.flow.produce("raw", day(2))
    shutil.rmtree(project.flow.root / "raw")
    refused = project.launch("tidy", day(2))

    said = tick(project).skip_message or ""

    assert "INVALID_PATH" in refused.said
    assert f"raw: 1 FAILED, e.g. {day(1)} (no such mount)" in said
    assert f"tidy: 1 INVALID_PATH, e.g. {day(2)}" in said


def test_dynamic_chunks_are_made_known_to_dagster_before_they_run(project: Project) -> None:
    landing = external_dataset("landing")
    landed = dataset("landed", inputs={"source": landing})(lambda source: source)
    project.build(landing, landed)
    project.flow.announce("landing/delivery 7")

    (request,) = tick(project).run_requests or ()

    assert dataids_in(request.run_config) == {"delivery 7"}
    assert project.instance.get_dynamic_partitions("landed") == ["delivery 7"]


@pytest.mark.parametrize("sensor", [readiness_sensor, heal_sensor, files_sensor])
def test_a_sensor_that_cannot_reach_the_database_fails_its_tick(
    project: Project, sensor: Callable[[DatasetGraph], dg.SensorDefinition], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.build(raw)
    close_ledgers()
    monkeypatch.setenv("ODF_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")

    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        tick(project, sensor(graph_of(project)))


def test_a_tick_over_a_hundred_thousand_chunks_takes_a_few_statements(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = ranges(0, 9_999, 1)
    sources = [dataset(f"source{number}", partitions=numbers)(nothing) for number in range(5)]
    targets = [
        dataset(f"target{number}", partitions=numbers, inputs={"raw": sources[number]})(consume) for number in range(5)
    ]

    definitions = project.build(*sources, *targets)
    definitions.get_repository_def().load_all_definitions()
    for _, job in graph_of(project).produced[:5]:
        plan(project.flow.ledger, job, islice(numbers.all(), 2000))
    statements = count_statements(monkeypatch)
    requests = tick(project, readiness_sensor(graph_of(project), chunks_per_run=2000, runs_per_job=1)).run_requests

    assert sum(len(dataids_in(request.run_config)) for request in requests or ()) == 10_000
    assert 0 < statements.total() < 50, statements


# --- heal


def test_ready_chunks_that_dagster_does_not_know_are_reported_to_it_once(project: Project) -> None:
    landing = external_dataset("landing", partitions=DAYS)
    project.build(raw, landing)
    plan_days(project, 1, 2)
    project.flow.produce("raw", day(1))
    project.flow.produce("raw", day(2))
    project.flow.announce(f"landing/{day(3)}")

    first = heal(project)
    second = heal(project, first.cursor)

    assert [dataid for dataid, _ in project.materializations("raw")] == [day(2), day(1)]
    assert all("| SAFE | yes |" in str(told["answers"]) for _, told in project.materializations("raw"))
    assert [dataid for dataid, _ in project.materializations("landing")] == [day(3)]
    assert "reported to Dagster: 3" in (first.skip_message or "")
    assert "reported to Dagster: 0" in (second.skip_message or "")
    project.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = %s", day(1))
    checked(project, day(1), passed=False)
    third = heal(project, second.cursor)
    assert "reported to Dagster: 1" in (third.skip_message or "")
    project.flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = %s", day(1))
    checked(project, day(1), passed=True)
    check_of_first = dg.AssetCheckKey(dg.AssetKey("raw"), "rows")
    assert shown_checks(project, check_of_first) == [(day(1), False, True)]
    heal(project, third.cursor)
    assert shown_checks(project, check_of_first) == [(day(1), True, True)], "a later version replaces the result"


def checked(project: Project, dataid: str, *, passed: bool) -> None:
    """Another client publishes a version with the result of a check that only warns."""
    held = claim(project.flow.ledger, "raw", dataid)
    result = CheckResult(name="rows", passed=passed, detail="1 row", severity="warn")
    publish(project.flow.ledger, held, replace(project.flow.manifest(held), checks=(result,)))


def shown_checks(project: Project, key: dg.AssetCheckKey) -> list[tuple[str | None, bool, bool]]:
    infos = project.instance.event_log_storage.get_asset_check_partition_info([key])
    return [(info.partition_key, info.latest_execution_status.value == "SUCCEEDED", info.is_current) for info in infos]


def test_what_a_run_has_told_is_not_told_again(project: Project) -> None:
    @dataset("made", partitions=DAYS)
    def made(context):  # type: ignore[no-untyped-def]
        return context.spark.range(1)

    project.build(made)
    project.launch("made", day(1))

    assert "reported to Dagster: 0" in (heal(project).skip_message or "")
    assert len(project.materializations("made")) == 1


def test_chunks_whose_files_are_gone_are_reported_to_the_ledger(project: Project) -> None:
    project.build(raw, tidy)
    plan_days(project, 1, 2)
    project.flow.produce("raw", day(1))
    lost = project.flow.produce("raw", day(2))
    shutil.rmtree(project.flow.root / "raw" / f"claim-{lost.claim_id}")

    done = tick(project, files_sensor(graph_of(project)))

    assert "files gone: 1" in (done.skip_message or "")
    assert project.flow.status(f"raw/{day(1)}") == "READY"
    gone = project.flow.chunk(f"raw/{day(2)}")
    assert gone.status == "FAILED"
    assert "is missing" in (gone.reason or "")


def test_a_root_that_is_not_mounted_changes_no_chunk_and_fails_the_tick(project: Project) -> None:
    project.build(raw)
    plan_days(project, 1)
    project.flow.produce("raw", day(1))
    (project.flow.root / "raw").rename(project.flow.root / "elsewhere")

    with pytest.raises(dg.Failure, match=r"1 versions could not be checked: the root .*/raw of raw: it does not exist"):
        tick(project, files_sensor(graph_of(project)))

    assert project.flow.status(f"raw/{day(1)}") == "READY"
    (project.flow.root / "elsewhere").rename(project.flow.root / "raw")
    assert "files gone: 0" in (tick(project, files_sensor(graph_of(project))).skip_message or "")


def test_a_store_that_cannot_be_asked_changes_no_chunk_and_fails_the_tick(project: Project) -> None:
    """A file in the place of a folder: the store can say neither that the data is there nor that it is gone."""
    project.build(raw)
    plan_days(project, 1)
    made = project.flow.produce("raw", day(1))
    folder = project.flow.root / "raw" / f"claim-{made.claim_id}"
    shutil.rmtree(folder)
    folder.write_text("no folder")

    with pytest.raises(dg.Failure, match="cannot be read"):
        tick(project, files_sensor(graph_of(project)))

    assert project.flow.status(f"raw/{day(1)}") == "READY"


def test_files_of_what_others_make_are_their_own_matter(project: Project) -> None:
    """Another code location, on a machine that sees other places."""
    project.build(raw)
    plan_days(project, 1)
    project.flow.produce("raw", day(1))
    shutil.rmtree(project.flow.root / "raw")
    project.build(dataset("other", partitions=DAYS)(nothing))

    assert "files gone: 0" in (tick(project, files_sensor(graph_of(project))).skip_message or "")
    assert project.flow.status(f"raw/{day(1)}") == "READY"


def test_claims_of_a_run_that_is_over_are_given_back(project: Project) -> None:
    project.build(dataset("raw", partitions=DAYS, policy=Policy(lease=timedelta(hours=1)))(nothing))
    plan_days(project, 1, 2)
    run = queue(project, dg.RunRequest(job_name="raw", run_config={}, tags={}))
    run_id = begin_run(project.flow.ledger, "raw", runner="dagster", external_id=run.run_id)
    claim(project.flow.ledger, "raw", day(1), run_id)
    assert "dead runs: 0" in (heal(project).skip_message or "")

    project.instance.report_run_failed(run)

    assert "dead runs: 1" in (heal(project).skip_message or "")
    assert project.flow.status(f"raw/{day(1)}") == "RESUBMIT"


HERE = RegisteredCodeLocationOrigin("here")


def started(
    project: Project,
    *,
    minutes_ago: int,
    job: dg.JobDefinition | None = None,
    location: str = "here",
    request: dg.RunRequest | None = None,
) -> dg.DagsterRun:
    """A run that Dagster takes for started since then."""
    assert project.definitions is not None
    job = job or project.definitions.resolve_job_def("raw")
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(location), "__repository__")
    run = project.instance.create_run_for_job(
        job,
        run_config=request.run_config if request else None,
        tags={"dagster/sensor_name": "readiness"} if request else None,
        status=dg.DagsterRunStatus.NOT_STARTED,
        remote_job_origin=RemoteJobOrigin(repository, job.name),
        job_code_origin=JobPythonOrigin(
            job.name, RepositoryPythonOrigin("python", ModuleCodePointer("assets", "defs"))
        ),
    )
    project.flow.type(
        "update dagster.runs set status = 'STARTED', start_time = extract(epoch from now() - %s) where run_id = %s",
        timedelta(minutes=minutes_ago),
        run.run_id,
    )
    return run


def status_of(project: Project, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    found = project.instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


class Looks:
    """What looks for silent runs, with a clock of its own."""

    def __init__(self, project: Project, patch: pytest.MonkeyPatch) -> None:
        self._project = project
        self._now = 1000.0
        self._silent = SilentRuns(graph_of(project))
        patch.setattr(silent_runs, "monotonic", lambda: self._now)

    def after(self, seconds: float) -> int:
        """How many runs a look ends, so long after the last one."""
        self._now += seconds
        context = dg.build_sensor_context(instance=self._project.instance, definitions=self._project.definitions)
        context._code_location_origin = HERE
        return self._silent.end(context, self._project.flow.ledger)


def test_a_run_that_stays_silent_is_over_and_what_it_held_runs_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine went down: there is nobody who could tell Dagster."""
    project.build(dataset("raw", partitions=DAYS, policy=Policy(lease=timedelta(hours=1)))(nothing))
    plan_days(project, 1)
    (asked,) = tick(project).run_requests or ()
    begun = started(project, minutes_ago=10, location="its old name", request=asked)
    never_begun = started(project, minutes_ago=10)
    assert not tick(project).run_requests, "a run has it already"
    run_id = begin_run(project.flow.ledger, "raw", runner="dagster", external_id=begun.run_id)
    claim(project.flow.ledger, "raw", day(1), run_id)
    project.flow.type("update dataflow.job_run set heard = now() - interval '5 minutes'")
    looks = Looks(project, monkeypatch)

    assert [looks.after(seconds) for seconds in (0, 15, 15, 15)] == [0, 0, 0, 0]
    assert looks.after(15) == 2

    assert {status_of(project, run) for run in (begun, never_begun)} == {dg.DagsterRunStatus.FAILURE}
    assert "dead runs: 1" in (heal(project).skip_message or "")
    assert project.flow.status(f"raw/{day(1)}") == "RESUBMIT"
    (anew,) = tick(project).run_requests or ()
    assert dataids_in(anew.run_config) == {day(1)}


def test_a_run_that_lost_the_database_for_a_while_speaks_before_it_is_ended(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.build(raw)
    run = started(project, minutes_ago=10)
    run_id = begin_run(project.flow.ledger, "raw", runner="dagster", external_id=run.run_id)
    project.flow.type("update dataflow.job_run set heard = now() - interval '5 minutes'")
    looks = Looks(project, monkeypatch)
    looks.after(0)

    assert looks.after(600) == 0, "nobody could look meanwhile: it may not have been able to speak"
    record_heartbeat(project.flow.ledger, run_id)
    assert [looks.after(15) for _ in range(8)] == [0] * 8

    assert status_of(project, run) == dg.DagsterRunStatus.STARTED


def test_who_is_young_or_does_other_things_or_is_of_another_location_may_be_silent(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dg.job
    def theirs() -> None:
        pass

    project.build(raw)
    quiet = [
        started(project, minutes_ago=0),
        started(project, minutes_ago=100, job=theirs),
        started(project, minutes_ago=100, location="elsewhere"),
    ]
    looks = Looks(project, monkeypatch)

    assert [looks.after(15) for _ in range(8)] == [0] * 8
    assert {status_of(project, run) for run in quiet} == {dg.DagsterRunStatus.STARTED}


def test_a_run_whose_chunks_are_made_may_be_silent_while_checks_of_dagster_work(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dg.asset_check(asset="raw")
    def slow() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    project.build(raw)
    assert project.definitions is not None
    project.definitions = dg.Definitions.merge(project.definitions, dg.Definitions(asset_checks=[slow]))
    made, silent = started(project, minutes_ago=100), started(project, minutes_ago=100)
    end_run(project.flow.ledger, begin_run(project.flow.ledger, "raw", external_id=made.run_id))
    begin_run(project.flow.ledger, "raw", external_id=silent.run_id)
    project.flow.type(
        "update dataflow.job_run set heard = now() - interval '1 hour', started = now() - interval '1 hour',"
        " ended = ended - interval '1 hour'"
    )
    looks = Looks(project, monkeypatch)

    assert sum(looks.after(15) for _ in range(8)) == 1
    assert [status_of(project, run) for run in (made, silent)] == [
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.FAILURE,
    ]


def test_the_run_status_sensors_give_back_what_a_dead_run_holds(project: Project) -> None:
    project.build(raw)
    plan_days(project, 1, 2)
    run = queue(project, dg.RunRequest(job_name="raw", run_config={}, tags={}))
    run_id = begin_run(project.flow.ledger, "raw", runner="dagster", external_id=run.run_id)
    for number in (1, 2):
        claim(project.flow.ledger, "raw", day(number), run_id)

    assert release_claims(project.flow.ledger, run) == 2
    assert release_claims(project.flow.ledger, run) == 0

    chunk = project.flow.chunk(f"raw/{day(1)}")
    assert (chunk.status, chunk.reason) == ("RESUBMIT", f"Dagster run {run.run_id} is over")


def test_what_was_asked_of_a_run_that_was_cancelled_and_could_not_say_so_is_not_started_again(project: Project) -> None:
    project.build(raw)
    run = queue(project, dg.RunRequest(job_name="raw", run_config={}, tags={}))
    run_id = begin_run(project.flow.ledger, "raw", runner="dagster", external_id=run.run_id)
    (job,) = [made for _, made in graph_of(project).produced]
    request(project.flow.ledger, job, [day(1), day(2)], by="ada", requested=datetime.now(UTC), run_id=run_id)
    plan_days(project, 3)
    claim(project.flow.ledger, "raw", day(1), run_id)

    project.instance.report_run_canceled(run)

    assert "dead runs: 2" in (heal(project).skip_message or "")
    assert [project.flow.status(f"raw/{day(number)}") for number in (1, 2, 3)] == ["FAILED", "FAILED", "PENDING"]
    (started,) = tick(project).run_requests or ()
    assert dataids_in(started.run_config) == {day(3)}, "only what nobody had asked of that run"


def test_chunks_that_need_listed_inputs_or_ask_for_it_are_planned_by_themselves(project: Project) -> None:
    months = monthly("2024-01-01", "2024-01-01")
    days = daily("2024-01-01", "2024-01-03")
    source = dataset("days", partitions=days, planned=True)(nothing)
    month = dataset("month", partitions=months, inputs={"raw": source}, mapping={"raw": within(months, days)})(consume)
    project.build(source, month)

    sensor = planning_sensor(graph_of(project))
    first = tick(project, sensor)

    assert "planned: 4" in (first.skip_message or "")
    assert project.flow.status("days/2024-01-03") == "PENDING"
    assert project.flow.status("month/2024-01-01") == "PENDING"
    assert tick(project, sensor, first.cursor).skip_message == "nothing new to plan"


def test_a_mapping_that_raises_fails_its_tick_and_holds_back_no_other_dataset(project: Project) -> None:
    def broken(dataid: str) -> list[str]:
        raise ValueError(f"nobody knows what {dataid} needs")

    source = dataset("days", partitions=daily("2024-01-01", "2024-01-03"), planned=True)(nothing)
    bad = dataset("bad", partitions=DAYS, inputs={"raw": source}, mapping={"raw": ListedChunks(broken)})(consume)
    project.build(bad, source)

    with pytest.raises(dg.Failure, match="the chunks of 1 jobs could not be planned: bad: ValueError: nobody knows"):
        tick(project, planning_sensor(graph_of(project)))

    assert project.flow.status("days/2024-01-03") == "PENDING"
    assert "reported to Dagster: 0" in (heal(project).skip_message or "")


def test_a_day_is_planned_when_it_is_over_in_the_time_zone_of_its_dataset(project: Project) -> None:
    """Two zones that never have the same date, so at every hour of UTC one of them differs from it."""
    zones = {"west": ZoneInfo("Etc/GMT+12"), "east": ZoneInfo("Etc/GMT-14")}

    def yesterdays() -> dict[str, str]:
        return {name: (datetime.now(zone) - timedelta(days=1)).strftime("%Y-%m-%d") for name, zone in zones.items()}

    before = yesterdays()
    first = (datetime.now(UTC) - timedelta(days=7)).strftime("%Y-%m-%d")
    project.build(
        *(dataset(name, partitions=daily(first), planned=True, timezone=zones[name].key)(nothing) for name in zones)
    )

    tick(project, planning_sensor(graph_of(project)))

    found = project.flow.psql.execute("select datasetid, max(dataid) from dataflow.datastatus group by 1").fetchall()
    assert dict(found) in (before, yesterdays())
