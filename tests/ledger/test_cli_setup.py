"""`odf dataset` and `odf job`: list, show, add, set, export, import; and `odf db shell`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId
from opendataflow_dagster.model.partitions import daily
from tests.factories import Flow
from tests.operator import Odf

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def run(flow: Flow) -> Odf:
    return Odf(url=flow.url)


@pytest.fixture
def registered(flow: Flow) -> Flow:
    return with_definitions(flow)


@pytest.fixture(scope="module")
def unchanged(shared_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odf]:
    """Shared by tests of refused commands, which change nothing."""
    with Ledger(shared_database) as ledger, psycopg.connect(shared_database, autocommit=True) as psql:
        with_definitions(Flow(ledger=ledger, url=shared_database, psql=psql, root=tmp_path_factory.mktemp("lake")))
        yield Odf(url=shared_database)


def with_definitions(flow: Flow) -> Flow:
    weather = Dataset(datasetid=DatasetId("weather"), partitions=daily("2024-01-01"), owner="ada")
    flow.register("load: -> flights", "average: flights, weather -> delays", weather=weather)
    return flow


def test_dataset_list_shows_producers_and_consumers(registered: Flow, run: Odf) -> None:
    lines = run.text("dataset", "list").splitlines()
    assert lines[0].split() == ["DATASET", "producer", "consumers", "partitions", "location", "owner"]
    assert lines[3].split("  ")[0] == "weather"
    assert "external" in lines[3]
    assert "daily from 2024-01-01" in lines[3]
    result = {dataset["datasetid"]: dataset for dataset in run.json("dataset", "list")["datasets"]}
    assert (result["flights"]["producer"], result["flights"]["consumers"]) == ("load", ["average"])
    assert (result["weather"]["producer"], result["weather"]["owner"]) == (None, "ada")


def test_jobs_are_shown_with_inputs_outputs_and_limits(registered: Flow, run: Odf) -> None:
    assert "average  flights, weather  delays   10 min" in run.text("job", "list")
    assert [job["jobid"] for job in run.json("job", "list")["jobs"]] == ["average", "load"]
    run.text("throttle", "average", "3")
    assert "Concurrency limit: 0 of 3 chunks running; change it with: odf throttle average N" in run.text(
        "job", "show", "average"
    )
    result = run.json("job", "show", "average")
    assert result["policy"]["lease"] == 600
    assert result["room"]["concurrency"] == 3
    assert "job nope is not registered" in run.error("job", "show", "nope")


def test_a_dataset_is_shown_without_its_password(registered: Flow, run: Odf) -> None:
    registered.type(
        "update dataflow.dataset set encryptedpass = 's3cret', username = 'reader' where datasetid = 'weather'"
    )
    for words in (["dataset", "show", "weather"], ["dataset", "show", "weather", "--json"], ["dataset", "export"]):
        printed = run.text(*words)
        assert "reader" in printed
        assert "s3cret" not in printed
    assert "DataSet nope is not registered; list the DataSets with: odf dataset list" in run.error(
        "dataset", "show", "nope"
    )


def test_an_empty_ledger_suggests_the_first_command(run: Odf) -> None:
    assert "Add one with: odf dataset add NAME" in run.text("dataset", "list")
    assert "Add one with: odf job add NAME" in run.text("job", "list")
    assert run.json("dataset", "list") == {"datasets": []}
    assert run.json("job", "export") == {"format": 1, "datasets": [], "jobs": []}


def test_a_dataset_is_added_once_then_changed_with_set(run: Odf) -> None:
    words = ["dataset", "add", "codes", "--partitions", "static:a,b", "--hostname", "db1", "--repeats"]
    assert run.text(*words, "--dry-run").endswith("Added: dataset codes.\n")
    assert run.json(*words)["new"] == ["dataset codes"]
    assert "DataSet codes already exists; change it with" in run.error(*words)
    assert run.json("dataset", "set", "codes", "--owner", "ada", "--tablename", "c")["changed"] == ["dataset codes"]
    result = run.json("dataset", "show", "codes")
    assert (result["owner"], result["repeats"], result["partitions"]) == (
        "ada",
        True,
        {"kind": "static", "keys": ["a", "b"]},
    )
    assert (result["connection"]["hostname"], result["connection"]["tablename"]) == ("db1", "c")
    assert run.text("dataset", "set", "codes", "--owner", "", "--partitions", "any") == "Changed: dataset codes.\n"
    assert run.json("dataset", "show", "codes")["partitions"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dataset", "add", "x", "--partitions", "daily:soon"], "'soon' is not a daily dataid"),
        (["dataset", "add", "x", "--partitions", "sometimes"], "is not a valid partition scheme; use daily:2024-01-01"),
        (["dataset", "add", "x", "--timezone", "Mars/North"], "is not a time zone"),
        (["dataset", "add", "x", "--location", "../up"], "is not a root"),
        (["dataset", "add", " "], "must not be empty"),
        (["dataset", "set", "codes"], "DataSet codes is not registered"),
        (["dataset", "set", "flights"], "DataSet flights: nothing to change"),
        (["dataset", "set", "flights", "--timezone", ""], "--timezone must not be empty"),
        (["dataset", "export", "nope"], "DataSet nope is not registered"),
        (["job", "add", "x"], "pass at least one with --out"),
        (["job", "add", "x", "--out", "nope"], "job x uses nope, which is not registered"),
        (["job", "add", "x", "--out", "flights"], "has two producers, load and x"),
        (["job", "add", "load", "--out", "flights"], "job load already exists; change it with"),
        (["job", "set", "load", "--in", "delays"], "DataSets depend on themselves"),
        (["dataset", "add", "x", "--partitions", "hourly:"], "'' is not an hourly dataid"),
        (["dataset", "add", "x", "--as", "\udcff"], "the actor holds a character that cannot be stored"),
        (["dataset", "add", "x", "--reason", "\udcff"], "the reason holds a character that cannot be stored"),
        (["job", "set", "load", "--lease", "soon"], "is not a valid duration"),
        (["job", "set", "load", "--lease", "999999999d"], "make it at most 366 days"),
        (["job", "set", "load", "--retry-delay", "367d"], "make it at most 366 days"),
        (["job", "set", "load"], "job load: nothing to change"),
        (["job", "set", "nope", "--lease", "1h"], "job nope is not registered"),
        (["job", "export", "nope"], "job nope is not registered"),
        (["job", "import", "no-such-file.json"], "no-such-file.json"),
    ],
)
def test_an_invalid_definition_is_one_line_and_changes_nothing(unchanged: Odf, words: list[str], message: str) -> None:
    before = unchanged.text("job", "export")
    assert message in unchanged.error(*words)
    assert unchanged.text("job", "export") == before


def test_job_add_and_set_store_policy_and_variables(registered: Flow, run: Odf) -> None:
    run.text("dataset", "add", "report")
    words = [
        "--in",
        "delays:all",
        "--out",
        "report",
        "--lease",
        "2h",
        "--env",
        "MODE=full",
        "--env",
        "PAGER",
        "--ordered",
    ]
    assert run.text("job", "add", "sum", *words, "--dry-run").endswith("Would report: Added: job sum.\n")
    assert run.json("job", "add", "sum", *words)["new"] == ["job sum"]
    assert run.json("job", "set", "sum", "--retry-on", "timeout", "--retry-delay", "5min")["changed"] == ["job sum"]
    assert run.text("job", "set", "sum", "--retry-on", "timeout") == "1 unchanged.\n"
    assert run.text("job", "set", "sum", "--max-attempts", "3", "--cascade") == "Changed: job sum.\n"
    result = run.json("job", "show", "sum")
    assert result["inputs"] == [{"datasetid": "delays", "mapping": "all"}]
    assert result["environment"] == {"MODE": "full", "PAGER": None}
    assert result["policy"] | {"max_attempts": 3} == result["policy"]
    assert [result["policy"][name] for name in ("lease", "retry_on", "retry_delay", "ordered")] == [
        7200,
        "timeout",
        300,
        True,
    ]
    assert "$PAGER" in run.text("job", "show", "sum")


def test_an_export_can_be_imported_repeatedly_without_change(
    registered: Flow, run: Odf, empty_url: str, tmp_path: Path
) -> None:
    run.text("job", "set", "load", "--env", "A=1", "--max-attempts", "7")
    run.text("dataset", "set", "weather", "--hostname", "db1")
    document = tmp_path / "jobs.json"
    document.write_text(run.text("job", "export"))
    elsewhere = Odf(url=empty_url)
    elsewhere.text("schema", "install")
    dry = elsewhere.text("job", "import", str(document), "--dry-run")
    assert dry == "Dry run, nothing was changed. Would report: Added: " + dry.partition("Added: ")[2]
    assert len(elsewhere.json("job", "import", str(document))["new"]) == 5
    assert elsewhere.text("job", "import", str(document)) == "5 unchanged.\n"
    assert elsewhere.text("job", "export") == document.read_text()
    again = elsewhere.json("dataset", "import", str(document))
    assert (again["new"], again["changed"], len(again["unchanged"])) == ([], [], 5)
    assert [dataset["datasetid"] for dataset in run.json("job", "export", "load")["datasets"]] == ["flights"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "the document is not a registry export"),
        ('{"format": 1, "tables": []}', "the document has the unknown key 'tables'"),
        ('{"format": 1, "datasets": [{"name": "x"}]}', "an entry has no datasetid"),
        ('{"format": 1, "datasets": [{"datasetid": "x", "loction": "/x"}]}', "DataSet x has the unknown key 'loction'"),
        ('{"format": 1, "datasets": null}', "the document: datasets is None, but must be a list"),
        (
            '{"format": 1, "datasets": [{"datasetid": "x", "location": 7}]}',
            "DataSet x: location is 7, but must be a string",
        ),
        ('{"format": 1, "datasets": [{"datasetid": "x", "repeats": 1}]}', "repeats is 1, but must be true or false"),
        ('{"format": 1, "datasets": [{"datasetid": "x", "foreign_ready": "no"}]}', "trusted or refused"),
        ('{"format": 1, "datasets": [{"datasetid": "x", "skipped_input": "no"}]}', "waits or passes"),
        (
            '{"format": 1, "datasets": [{"datasetid": "x", "connection": {"hostname": 7}}]}',
            "the connection of DataSet x: hostname is 7, but must be a string or null",
        ),
        (
            '{"format": 1, "datasets": [{"datasetid": "x", "connection": {"hostname": "a\\u0000b"}}]}',
            "the connection of DataSet x: hostname contains a character that cannot be stored",
        ),
        (
            '{"format": 1, "datasets": [{"datasetid": "x", "partitions": {"kind": "daily", "first": ""}}]}',
            "'' is not a daily dataid",
        ),
        (
            '{"format": 1, "datasets": [{"datasetid": "x", "partitions":'
            ' {"kind": "daily", "first": "2024-01-01", "last": 7}}]}',
            "DataSet x: 7 is not text; write it as a string",
        ),
        ('{"format": 1, "datasets": [{"datasetid": "x", "partitions": {"kind": "odd"}}]}', "are not partitions"),
        (
            '{"format": 1, "jobs": [{"jobid": "j", "outputs": ["x"], "policy": {"leese": 1}}]}',
            "the policy of job j has",
        ),
        ('{"format": 1, "jobs": [{"jobid": "j", "outputs": ["x"], "policy": {"lease": 1e300}}]}', "'j' has a value"),
        ('{"format": 1, "jobs": [{"jobid": "j", "outputs": ["x"], "policy": {"lease": 1e9}}]}', "at most 366 days"),
        (
            '{"format": 1, "jobs": [{"jobid": "j", "outputs": ["x"], "environment": {"A": 1}}]}',
            "the environment of job j: A is 1, but must be a string or null",
        ),
        ('{"format": 1, "jobs": [{"jobid": "j", "outputs": "x"}]}', "job j: outputs is 'x', but must be a list"),
        ('{"format": 1, "jobs": [{"jobid": "j", "outputs": [7]}]}', "a DataSet name must be text"),
        ('{"format": 1, "jobs": [{"jobid": "j", "outputs": ["x"], "inputs": [{}]}]}', "an entry has no datasetid"),
        ('{"format": 1, "jobs": [{"jobid": "j", "outputs": ["x"], "inputs": ["a"]}]}', "'a' is not a JSON object"),
        ('{"format": 1, "jobs": [{"jobid": "j", "outputs": ["x"]}]}', "job j uses x, which is not registered"),
    ],
)
def test_an_invalid_document_is_one_line_and_changes_nothing(unchanged: Odf, document: str, message: str) -> None:
    before = unchanged.text("dataset", "list"), unchanged.text("job", "export")
    for noun in ("dataset", "job"):
        result = unchanged(noun, "import", "-", stdin=document)
        assert (result.exit_code, result.stdout) == (64, "")
        assert message in result.stderr
        assert "Traceback" not in result.stderr
    assert (unchanged.text("dataset", "list"), unchanged.text("job", "export")) == before


def in_dataset(name: str, value: str) -> str:
    return f'{{"format": 1, "datasets": [{{"datasetid": "x", "{name}": {value}}}]}}'


def in_policy(name: str, value: str) -> str:
    return f'{{"format": 1, "jobs": [{{"jobid": "j", "outputs": ["flights"], "policy": {{"{name}": {value}}}}}]}}'


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


DEEP = [nested(depth) for depth in (300, 900, 985, 100_000)] + [nested(400, '{"a":', "}").replace(":}", ":1}")]
HUGE = ["1e999999", "-1e999999", "NaN", "1" * 4000, "-" + "1" * 5000, "1" * 5000 + ".5"]


@pytest.mark.parametrize(
    "document",
    [
        *DEEP,
        *(in_dataset("repeats", deep) for deep in DEEP),
        *(in_dataset("partitions", f'{{"kind": {deep}}}') for deep in DEEP),
        *(in_dataset("partitions", f'{{"kind": "static", "keys": [{deep}]}}') for deep in DEEP),
        *(in_dataset("partitions", f'{{"kind": "range", "first": 0, "last": {huge}, "step": 1}}') for huge in HUGE),
        *(in_policy(name, huge) for name in ("lease", "retry_delay", "max_attempts") for huge in HUGE),
        in_policy("max_attempts", str(2**31)),
        in_policy("max_attempts", str(2**63)),
        '{"format": 1e999999}',
        in_dataset("x" * 100_000, "1"),
        in_dataset("location", "7" * 4000),
        in_dataset("timezone", '"' + "x" * 100_000 + '"'),
    ],
    ids=lambda document: f"{document[:70]}...{len(document)}",
)
def test_deep_and_huge_values_in_an_import_are_a_clear_error(unchanged: Odf, document: str) -> None:
    result = unchanged("job", "import", "-", stdin=document)
    assert (result.exit_code, result.stdout) == (64, "")
    assert result.stderr.startswith("odf: ")
    assert (len(result.stderr) < 500, result.stderr.count("\n")) == (True, 1)


def test_an_import_that_the_database_rejects_registers_nothing(flow: Flow, run: Odf) -> None:
    flow.type("alter table dataflow.dataset add constraint short_hostnames check (length(hostname) < 5)")
    half = '{"format": 1, "datasets": [{"datasetid": "half", "connection": {"hostname": "too-long"}}]}'
    assert run("dataset", "import", "-", stdin=half).exit_code == 128
    assert run.json("dataset", "list") == {"datasets": []}


def many(count: int) -> str:
    return json.dumps({"format": 1, "datasets": [{"datasetid": f"set_{number}"} for number in range(count)]})


def test_only_a_large_import_needs_confirmation(run: Odf) -> None:
    asked = run("dataset", "import", "-", stdin=many(21))
    assert (asked.exit_code, asked.stdout) == (64, "")
    assert "this would register 21 new and 0 changed DataSets and Jobs; check with --dry-run" in asked.stderr
    assert run.json("dataset", "list") == {"datasets": []}
    assert run("dataset", "import", "-", "--dry-run", stdin=many(21)).exit_code == 0
    assert run("dataset", "import", "-", stdin=many(20)).exit_code == 0
    # Unchanged definitions do not count.
    done = run("dataset", "import", "-", stdin=many(21))
    assert (done.exit_code, done.stdout) == (0, "Added: dataset set_20; 20 unchanged.\n")
    assert run("dataset", "import", "-", "--yes", stdin=many(50)).exit_code == 0


def test_show_lists_who_changed_a_definition_and_why(flow: Flow, run: Odf) -> None:
    run.text("dataset", "add", "raw", "--owner", "ada", "--as", "ada", "--reason", "a new source")
    run.text("dataset", "set", "raw", "--owner", "grace", "--hostname", "db1", "--as", "grace", "--reason", "she left")
    flow.type("update dataflow.dataset set encryptedpass = 'hush-hush'")
    run.text("job", "add", "load", "--out", "raw", "--env", "MODE=full", "--as", "ada", "--reason", "nightly")
    run.text("job", "set", "load", "--lease", "2h", "--as", "grace", "--reason", "it is slow")
    flow.type("delete from dataflow.job where itemtype = 'MODE'")

    login = flow.psql.info.user
    shown = run.json("dataset", "show", "raw")["changes"]
    assert [(change["by"], change["reason"], change["what"]) for change in shown] == [
        (login, None, ["password changed"]),
        ("grace", "she left", ["owner: ada -> grace", "hostname: None -> db1"]),
        ("ada", "a new source", ["new"]),
    ]
    shown = run.json("job", "show", "load")["changes"]
    assert [(change["by"], change["reason"], change["what"]) for change in shown] == [
        (login, None, ["- $MODE"]),
        ("grace", "it is slow", ["lease: 00:10:00 -> 02:00:00"]),
        ("ada", "nightly", ["+ $MODE", "+ OUT raw", "policy new"]),
    ]
    assert "Changes" in run.text("dataset", "show", "raw")
    assert "it is slow" in run.text("job", "show", "load")
    assert "hush" not in str(flow.psql.execute("select e::text from dataflow.registry_event e").fetchall())


def test_a_definition_that_does_not_change_adds_no_history(flow: Flow, run: Odf) -> None:
    run.text("dataset", "add", "raw")
    run.text("dataset", "set", "raw", "--owner", "")
    flow.type("update dataflow.dataset set owner = owner")
    assert len(run.json("dataset", "show", "raw")["changes"]) == 1


def test_every_partition_scheme_can_be_given_as_an_option(run: Odf) -> None:
    run.text("dataset", "add", "h", "--partitions", "hourly:2024-01-01-00:00/2024-01-02-00:00")
    run.text("dataset", "add", "r", "--partitions", "range:0:999:100")
    run.text("dataset", "add", "m", "--partitions", "monthly:2024-01-01:2024-12-01")
    assert run.json("dataset", "show", "h")["partitions"]["last"] == "2024-01-02-00:00"
    assert "range from 0 to 999" in run.text("dataset", "show", "r")
    assert run.json("dataset", "show", "m")["partitions"]["kind"] == "monthly"


@pytest.mark.parametrize("words", [["dataset", "list"], ["job", "list"], ["heal"], ["dataset", "add", "x"]])
def test_a_database_without_schema_is_one_line_with_next_step(empty_url: str, words: list[str]) -> None:
    for json_wanted in ([], ["--json"]):
        assert "run: odf schema install" in Odf(url=empty_url).error(*words, *json_wanted, exit_code=134)


def test_job_begin_renew_end_and_fail_report_text_or_json(flow: Flow, run: Odf) -> None:
    (load,) = flow.register("load: -> raw", raw=Dataset(datasetid=DatasetId("raw")))
    flow.plan(load, ["1", "2"])
    assert run.text("job", "begin", "load").startswith("Run 1 of job load claimed 1; the lease expires ")
    assert run.text("job", "renew", "1").startswith("Run 1: the lease now expires ")
    ended = run.json("job", "end", "1", "--rows", "12")
    assert (ended["run_id"], [(published["datasetid"], published["version"]) for published in ended["versions"]]) == (
        1,
        [("raw", 1)],
    )
    run.text("job", "begin", "load")
    assert run.text("job", "fail", "2", "--reason", "disk full") == "Run 2 failed: 2.\n"


def test_dev_refuses_a_folder_without_a_project_and_a_port_in_use(
    tmp_path: Path, run: Odf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert f"{tmp_path} has no workspace.yaml; go to the folder of a project" in run.error("dev")
    (tmp_path / "workspace.yaml").touch()
    assert f"{tmp_path}/dagster_home has no dagster.yaml" in run.error("dev")
    (tmp_path / "dagster_home").mkdir()
    (tmp_path / "dagster_home" / "dagster.yaml").touch()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert f"port {port} cannot be used (Address already in use)" in run.error("dev", "--port", port)


def test_db_shell_runs_psql_and_returns_its_exit_code(flow: Flow) -> None:
    def shell(*words: str) -> subprocess.CompletedProcess[str]:
        script = "from opendataflow_dagster.cli.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", script, "db", "shell", "--", *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "ODF_DATABASE_URL": flow.url, "PYTHONPATH": str(PROJECT)},
        )

    flow.register("load: -> raw")
    assert shell("-Atc", "select datasetid from dataflow.dataset").stdout == "raw\n"
    assert shell("-v", "ON_ERROR_STOP=1", "-c", "select nothing").returncode != 0
    assert json.dumps(flow.url) not in shell("-c", "select 1").stderr
