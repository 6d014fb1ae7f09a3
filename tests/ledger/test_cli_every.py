"""Every command of `odf` is tested for success, an error and JSON; a new command must be added here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import pytest
from click.testing import Result

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.cli.reference import leaves
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId
from tests.factories import Flow
from tests.operator import Odf, impatient

OPTIONS = {
    " ".join(words[1:]): {name for parameter in command.params for name in parameter.opts}
    for words, command in leaves(odf)
}
TESTS = Path(__file__).parents[1]
NOWHERE = "postgresql://odf@127.0.0.1:1/nowhere?connect_timeout=1"


@dataclass(frozen=True, kw_only=True)
class Here:
    """Run on the month after an outage. `{tmp}` is a folder; arguments follow the command."""

    well: str = ""
    says: str
    #: Wrong arguments and the message for them; None: the ledger cannot be reached.
    wrong: str | None = None
    error: str = "cannot be reached"
    #: A name in its JSON; `json_well`: the arguments, if they differ.
    json: str | None
    json_well: str | None = None
    first: Callable[[Flow, Path], object] = lambda _, __: None


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Needs more than a ledger: the tests that cover it, as `folder/file::function`."""

    success: str
    error: str
    json: str | None


def spare(flow: Flow, _: Path) -> None:
    """A Job whose chunk is claimed by run 3 and needs no folder."""
    (job,) = flow.register("spare: -> extra", extra=Dataset(datasetid=DatasetId("extra")))
    flow.plan(job, ["1"])
    assert Odf(url=flow.url).json("job", "begin", "spare")["run_id"] == 3


def made_twice(flow: Flow, _: Path) -> None:
    # Clones of the month share its folder, and the number of the next claim.
    rmtree(flow.root / "flights" / "claim-36", ignore_errors=True)
    flow.type(
        "update dataflow.datastatus set status = 'RESUBMIT' where datasetid = 'flights' and dataid = '2024-01-01'"
    )
    flow.produce("load", "2024-01-01")


def typed(*lines: str) -> Callable[[Flow, Path], None]:
    def act(flow: Flow, _: Path) -> None:
        for line in lines:
            Odf(url=flow.url).text(*line.split())

    return act


def script(_: Flow, folder: Path) -> None:
    path = folder / "load.sh"
    path.write_text('#!/bin/sh\nmkdir -p "$flights_location"; echo 1 > "$flights_location/part-0"; echo made $dataid\n')
    path.chmod(0o755)


def exported(flow: Flow, folder: Path) -> None:
    (folder / "all.json").write_text(Odf(url=flow.url).text("job", "export"))


EVERY: dict[str, Here | Elsewhere] = {
    # Inspect
    "status": Here(says="delays/2024-01-14", wrong="nope", error="there is no DataSet nope", json="datasets"),
    "watch": Here(well="--looks 1", says="RUNNING -> FAILED", wrong="--every 0", error="--every", json="new_status"),
    "why": Here(
        well="load 2024-01-22", says="load/2024-01-22 can run", wrong="nope", error="job nope is not", json="verdict"
    ),
    "chunks": Here(
        well="delays", says="30 chunks", wrong="nope", error="DataSet nope is not registered", json="chunks"
    ),
    "chunk show": Here(
        well="delays 2024-01-09",
        says="is FAILED",
        wrong="delays nope",
        error="there is no chunk delays/nope",
        json="events",
    ),
    "diff": Here(
        first=made_twice,
        well="flights 2024-01-01",
        says="not compared: version 1 has files that are not Parquet (part-0)",
        wrong="flights 2024-01-02",
        error="has nothing before version 1 to compare it with",
        json="rows_note",
    ),
    "stale": Here(
        first=made_twice,
        well="delays",
        says="delays/2024-01-01",
        wrong="nope",
        error="DataSet nope is not registered",
        json="stale",
    ),
    "runs": Here(says="cron", wrong="nope", error="job nope is not registered", json="runs"),
    "history": Here(says="RUNNING -> FAILED", wrong="nope", error="DataSet nope is not registered", json="events"),
    # Operate
    "plan": Here(well="average", says="10 WAIT, 6 RUN", wrong="nope", error="job nope is not", json="chunks"),
    "resubmit": Here(
        well="delays 2024-01-09",
        says="Resubmitted delays/2024-01-09.",
        wrong="delays",
        error="delays: no chunks selected",
        json="chunks",
    ),
    "refresh": Here(
        first=made_twice,
        well="delays",
        says="Resubmitted delays/2024-01-01.",
        wrong="nope",
        error="DataSet nope is not registered",
        json="chunks",
    ),
    "hold": Here(
        well="delays 2024-01-09",
        says="Held delays/2024-01-09.",
        wrong="nope 1",
        error="DataSet nope is not registered",
        json="chunks",
    ),
    "unhold": Here(
        first=typed("hold delays 2024-01-09"),
        well="delays 2024-01-09",
        says="Released delays/2024-01-09.",
        wrong="delays nope",
        error="there is no chunk delays/nope",
        json="chunks",
    ),
    "skip": Here(
        well="flights 2024-01-30",
        says="Skipped flights/2024-01-30.",
        wrong="nope 1",
        error="DataSet nope is not registered",
        json="chunks",
    ),
    "cancel": Here(
        well="delays 2024-01-14",
        says="Cancelled delays/2024-01-14.",
        wrong="--run 99",
        error="run 99 does not exist",
        json="chunks",
    ),
    "rollback": Here(
        first=made_twice,
        well="flights 2024-01-01",
        says="is at version 3, which has the files of version 1",
        wrong="flights 2024-01-02",
        error="has no earlier version",
        json="version",
    ),
    "announce": Here(
        first=typed("dataset add weather"),
        well="weather 1",
        says="Announced weather/1.",
        wrong="delays 1",
        error="is produced by job average",
        json="chunks",
    ),
    "throttle": Here(
        well="average 2", says="runs at most 2 chunks", wrong="average many", error="is not a number", json="room"
    ),
    "pause": Here(well="average", says="Job average is paused.", wrong="nope", error="job nope is not", json="room"),
    "resume": Here(
        first=typed("pause average"),
        well="average",
        says="Job average is resumed.",
        wrong="nope",
        error="job nope is not",
        json="room",
    ),
    "heal": Here(says="expired leases: 0 resubmitted", json="resubmitted"),
    "sweep": Here(well="delays", says="removed 0 old versions", wrong="nope", error="nope", json="versions"),
    "delete-run": Here(
        well="average 2024-01-14",
        says="Deleted delays/2024-01-14.",
        wrong="nope 1",
        error="job nope is not registered",
        json="chunks",
    ),
    # Run
    "run": Here(
        first=script,
        well="{tmp}/load.sh",
        says="made 2024-01-22",
        wrong="nope.sh",
        error="script nope.sh does not exist",
        json="exit_code",
    ),
    "force": Here(
        first=script,
        well="--dataid x {tmp}/load.sh",
        says="made x",
        wrong="--dataid x nope.sh",
        error="script nope.sh does not exist",
        json="exit_code",
    ),
    # Report
    "report": Here(
        well="-o {tmp}/page.html",
        says="Wrote ",
        wrong="-o {tmp}/no/page.html",
        error="cannot be written",
        json="failures",
        json_well="",
    ),
    "metrics": Here(says="odf_up 1.0", wrong="--listen here", error="is not a valid address", json="metrics"),
    "digest": Here(says="failed, 3 causes", wrong="--webhook --mail a@b", error="cannot be combined", json="causes"),
    # Set up
    "init": Here(
        well="{tmp}/sales", says="Wrote 9 files", wrong="{tmp}/Sales", error="is not a valid project name", json="files"
    ),
    "dataset list": Here(says="flights", json="datasets"),
    "dataset show": Here(
        well="delays", says="location", wrong="nope", error="DataSet nope is not registered", json="datasetid"
    ),
    "dataset add": Here(
        well="codes", says="Added: dataset codes.", wrong="delays", error="DataSet delays already exists", json="new"
    ),
    "dataset set": Here(
        well="delays --owner ada",
        says="Changed: dataset delays.",
        wrong="delays",
        error="DataSet delays: nothing to change",
        json="changed",
    ),
    "dataset remove": Here(
        first=typed("dataset add codes"),
        well="codes",
        says="Removed DataSet codes.",
        wrong="delays",
        error="DataSet delays is used by job average (OUT)",
        json="datasetid",
    ),
    "dataset export": Here(says='"delays"', wrong="nope", error="DataSet nope is not registered", json="datasets"),
    "dataset import": Here(
        first=exported, well="{tmp}/all.json", says="4 unchanged", wrong="{tmp}/no.json", error="no.json", json="new"
    ),
    "job list": Here(says="average", json="jobs"),
    "job show": Here(well="average", says="delays", wrong="nope", error="job nope is not registered", json="policy"),
    "job add": Here(
        first=typed("dataset add codes"),
        well="sum --in delays --out codes",
        says="Added: job sum.",
        wrong="sum --out delays",
        error="has two producers, average and sum",
        json="new",
    ),
    "job set": Here(
        well="load --lease 1h",
        says="Changed: job load.",
        wrong="load",
        error="job load: nothing to change",
        json="changed",
    ),
    "job remove": Here(
        well="load",
        says="Removed job load. Its chunks stay: flights has",
        wrong="average",
        error="job average is making 1 chunk (delays/2024-01-14)",
        json="chunks",
    ),
    "job export": Here(says='"average"', wrong="nope", error="job nope is not registered", json="jobs"),
    "job import": Here(
        first=exported, well="{tmp}/all.json", says="4 unchanged", wrong="{tmp}/no.json", error="no.json", json="new"
    ),
    "job begin": Here(
        well="average", says="of job average claimed 2024-01-15", wrong="nope", error="job nope is not", json="claims"
    ),
    "job renew": Here(
        first=spare, well="3", says="the lease now expires", wrong="99", error="run 99 does not exist", json="claims"
    ),
    "job end": Here(
        first=spare,
        well="3",
        says="Run 3 published extra version 1.",
        wrong="1",
        error="run 1 of job load has already ended",
        json="versions",
    ),
    "job fail": Here(
        first=spare,
        well="3 --reason full",
        says="Run 3 failed: 1.",
        wrong="3",
        error="run 3: --reason is required",
        json="claims",
    ),
    "schema install": Here(says="The schema is up to date.", json="applied"),
    "schema verify": Here(says="The schema is complete", json="ok"),
    "schema sql": Here(says="create schema", wrong="x", error="unexpected extra argument", json=None),
    "completion": Here(well="bash", says="_ODF_COMPLETE", wrong="dos", error="dos", json=None),
    "check": Elsewhere(
        success="dagster/test_cli_code.py::test_a_new_project_can_be_checked_and_applied",
        error="dagster/test_cli_code.py::test_code_that_cannot_be_loaded_is_a_one_line_error",
        json="dagster/test_cli_code.py::test_a_new_project_can_be_checked_and_applied",
    ),
    "apply": Elsewhere(
        success="dagster/test_cli_code.py::test_apply_reports_changes_and_asks_when_there_are_many",
        error="dagster/test_cli_code.py::test_code_that_cannot_be_loaded_is_a_one_line_error",
        json="dagster/test_cli_code.py::test_a_new_project_can_be_checked_and_applied",
    ),
    **{
        f"db {verb}": Elsewhere(
            success="ledger/test_cli_db.py::test_the_embedded_server_starts_reports_and_stops",
            error=f"ledger/test_cli_db.py::{error}",
            json="ledger/test_cli_db.py::test_the_embedded_server_starts_reports_and_stops",
        )
        for verb, error in (
            ("start", "test_a_server_error_is_one_line_with_exit_code_135"),
            ("stop", "test_a_configured_server_cannot_be_started_or_stopped"),
            ("status", "test_a_server_error_is_one_line_with_exit_code_135"),
            ("url", "test_an_invalid_url_is_rejected_without_printing_it"),
        )
    },
    "dev": Elsewhere(
        success="system/test_new_project.py::test_one_command_runs_a_new_project_and_the_consumer_follows_by_itself",
        error="ledger/test_cli_setup.py::test_dev_refuses_a_folder_without_a_project_and_a_port_in_use",
        json=None,
    ),
    "table refresh": Elsewhere(
        success="dagster/test_catalog_table.py::test_odf_table_refresh_makes_a_table_that_other_processes_read",
        error="dagster/test_catalog_table.py::test_odf_table_refresh_makes_a_table_that_other_processes_read",
        json="dagster/test_catalog_table.py::test_odf_table_refresh_makes_a_table_that_other_processes_read",
    ),
    "db shell": Elsewhere(
        success="ledger/test_cli_setup.py::test_db_shell_runs_psql_and_returns_its_exit_code",
        error="ledger/test_cli_setup.py::test_db_shell_runs_psql_and_returns_its_exit_code",
        json=None,
    ),
    **{
        f"secret {verb}": Elsewhere(
            success=f"ledger/test_secrets.py::{success}",
            error="ledger/test_secrets.py::test_refusals_are_one_sentence_with_their_exit_code",
            json=f"ledger/test_secrets.py::{success}",
        )
        for verb, success in (
            ("set", "test_a_password_is_set_from_stdin_verified_and_decrypted"),
            ("verify", "test_a_password_is_set_from_stdin_verified_and_decrypted"),
            ("decrypt", "test_a_password_is_set_from_stdin_verified_and_decrypted"),
            ("encrypt", "test_encrypt_prints_a_ciphertext_in_our_format_or_in_upstreams"),
            ("rotate", "test_rotate_reencrypts_every_password_in_its_own_format_or_none"),
        )
    },
}
HERE = [pytest.param(name, row, id=name) for name, row in EVERY.items() if isinstance(row, Here)]


def test_every_command_has_tests_of_success_error_and_json() -> None:
    assert set(EVERY) == set(OPTIONS)
    assert {name for name, row in EVERY.items() if row.json is None} == {
        name for name, options in OPTIONS.items() if "--json" not in options
    }
    named = {
        test for row in EVERY.values() if isinstance(row, Elsewhere) for test in (row.success, row.error, row.json)
    }
    for test in named - {None}:
        file, _, function = str(test).partition("::")
        assert f"\ndef {function}(" in (TESTS / file).read_text(), test


@pytest.mark.parametrize(("name", "row"), HERE)
def test_every_command_succeeds_fails_and_prints_json(
    month: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, row: Here
) -> None:
    monkeypatch.setenv("ODF_HOME", str(tmp_path / "home"))
    row.first(month, tmp_path)
    run, dry = Odf(url=month.url), ["--dry-run"] if "--dry-run" in OPTIONS[name] else []

    def call(arguments: str, *options: str, of: Odf = run) -> Result:
        return of(*name.split(), *options, *arguments.format(tmp=tmp_path).split())

    if row.json is not None:
        # As a dry run where there is one, so that the real run below still has something to do.
        well = row.well if row.json_well is None else row.json_well
        printed = call(well, *dry, "--json")
        assert printed.exit_code == 0, printed.output
        assert row.json in json.JSONDecoder().raw_decode(printed.stdout)[0]
    if row.wrong is None:
        with impatient():
            wrong = call(row.well, of=Odf(url=NOWHERE))
    else:
        wrong = call(row.wrong)
    assert (wrong.exit_code, wrong.stdout) == (132 if row.wrong is None else 64, "")
    assert row.error in " ".join(wrong.stderr.split())
    done = call(row.well)
    assert done.exit_code == 0, done.output
    assert row.says in done.stdout
