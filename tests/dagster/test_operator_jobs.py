"""The forms by which a person changes chunks from Dagster's UI."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from opendataflow_dagster import daily, dataset
from opendataflow_dagster.ledger import chunks
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.release import fail
from tests.dagster_project import Project
from tests.factories import key

DAYS = daily("2024-01-01", "2024-01-31")


def day(number: int) -> str:
    return f"2024-01-{number:02}"


@pytest.fixture
def month(project: Project) -> Project:
    """raw has days 1 to 3, of which 3 has failed; tidy has day 1."""
    project.build(
        dataset("raw", partitions=DAYS)(lambda: None),
        dataset("tidy", partitions=DAYS)(lambda raw: raw),
    )
    for number in (1, 2):
        project.flow.produce("raw", day(number))
    fail(project.flow.ledger, claim(project.flow.ledger, "raw", day(3)), "no such mount")
    project.flow.produce("tidy", day(1))
    return project


@dataclass(frozen=True, kw_only=True)
class Submitted:
    run_id: str
    said: str
    #: The text of the step's error; empty: none.
    error: str


def submit(project: Project, act: str, **form: object) -> Submitted:
    """As the Launchpad does."""
    assert project.definitions is not None
    done = project.definitions.resolve_job_def(f"odf_{act}").execute_in_process(
        instance=project.instance, run_config={"ops": {act: {"config": form}}}, raise_on_error=False
    )
    errors = [
        failure.user_failure_data.description or ""
        for event in done.all_events
        if event.is_step_failure and (failure := event.step_failure_data).user_failure_data
    ]
    assert done.success == (not errors)
    outputs = [event.step_output_data.metadata for event in done.all_events if event.is_successful_output]
    said = [str(metadata["said"].value) for metadata in outputs]
    return Submitted(run_id=done.run_id, said="".join(said), error="".join(errors))


def last_change(project: Project, chunk: str) -> tuple[str | None, str | None, str, str | None]:
    with project.flow.ledger.statement() as statement:
        event = chunks.history(statement, key(chunk))[-1]
    return event.new_status, event.actor, event.login, event.reason


def test_each_act_is_in_the_history_with_the_persons_name_the_run_the_login_and_the_reason(month: Project) -> None:
    flow = month.flow
    (login,) = flow.psql.execute("select session_user").fetchone() or ()
    acts: list[tuple[str, dict[str, object], str, str]] = [
        ("hold", {"dataids": [day(1)]}, f"Held raw/{day(1)}.", "HOLD"),
        ("unhold", {"dataids": [day(1)]}, f"Released raw/{day(1)}.", "READY"),
        ("resubmit", {"dataids": [day(1)]}, f"Resubmitted raw/{day(1)}.", "RESUBMIT"),
    ]
    for act, chosen, sentence, status in acts:
        done = submit(month, act, dataset="raw", person="ada", reason="the source", **chosen)
        assert done.said == sentence
        assert last_change(month, f"raw/{day(1)}") == (status, f"ada, Dagster run {done.run_id}", login, "the source")
        assert month.labels(done.run_id)[:2] == ("1", day(1))
        run = month.instance.get_run_by_id(done.run_id)
        assert run is not None
        assert run.tags["person"] == "ada"

    flow.produce("raw", day(1), "other content")
    done = submit(month, "rollback", dataset="raw", dataid=day(1), person="ada", reason="it was wrong")
    assert done.said == f"raw/{day(1)} is at version 3, which has the files of version 1."
    text = "rolled back to version 1: it was wrong"
    assert last_change(month, f"raw/{day(1)}") == ("READY", f"ada, Dagster run {done.run_id}", login, text)


def test_ranges_all_failed_chunks_and_what_was_made_from_them_can_be_resubmitted(month: Project) -> None:
    assert submit(month, "resubmit", failed=True, person="ada").said == f"Resubmitted raw/{day(3)}."
    assert submit(month, "resubmit", failed=True, person="ada").said == "Nothing to resubmit."
    done = submit(month, "resubmit", dataset="raw", dataids=[f"..{day(2)}"], downstream=True, person="ada")

    assert done.said == f"Resubmitted 3 chunks (raw/{day(1)}, raw/{day(2)}, tidy/{day(1)})."
    assert [month.flow.status(chunk) for chunk in (f"raw/{day(2)}", f"tidy/{day(1)}")] == ["RESUBMIT", "RESUBMIT"]


def test_a_dry_run_says_what_would_happen_and_changes_nothing(month: Project) -> None:
    for act, status in (("hold", "Held"), ("resubmit", "Resubmitted")):
        done = submit(month, act, dataset="raw", dataids=[".."], person="ada", dry_run=True, most_chunks=1)
        assert done.said.startswith(f"Dry run, nothing was changed. Would report: {status} 3 chunks (raw/")

    assert [month.flow.status(f"raw/{day(number)}") for number in (1, 2, 3)] == ["READY", "READY", "FAILED"]


@pytest.mark.parametrize(
    ("act", "form", "error"),
    [
        ("hold", {"dataset": "raw", "dataids": [day(1)], "person": "  "}, "person is empty; write your name"),
        ("hold", {"dataset": "raw", "person": "ada"}, "no chunks selected; write a dataset, and its dataids"),
        (
            "hold",
            {"dataset": "row", "dataids": [day(1)], "person": "ada"},
            "DataSet row is not registered; did you mean raw?",
        ),
        ("unhold", {"dataset": "raw", "dataids": [day(9)], "person": "ada"}, f"there is no chunk raw/{day(9)}"),
        (
            "resubmit",
            {"dataset": "raw", "dataids": [".."], "person": "ada", "most_chunks": 2},
            f"this would resubmit 3 chunks (raw/{day(1)}, raw/{day(2)}, raw/{day(3)}); check with dry_run: true, "
            f"then set most_chunks: 3",
        ),
        ("resubmit", {"dataids": [day(1)], "failed": True, "person": "ada"}, "cannot be combined with dataids"),
        ("rollback", {"dataset": "raw", "dataid": day(1), "person": "ada"}, "has no earlier version"),
        ("rollback", {"dataset": "raw", "dataid": day(1), "version": 7, "person": "ada"}, "has no version 7"),
    ],
)
def test_a_wrong_form_is_refused_with_the_next_step_and_changes_nothing(
    month: Project, act: str, form: dict[str, object], error: str
) -> None:
    before = month.flow.psql.execute("select count(*) from dataflow.chunk_event").fetchone()

    assert error in submit(month, act, **form).error

    assert month.flow.psql.execute("select count(*) from dataflow.chunk_event").fetchone() == before
