"""`odf init`, `odf check` and `odf apply`: a new project, and its code compared with the ledger."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opendataflow_dagster.insight.drift import DriftProblem, find_drift
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.definition import Definition, Registry, TableAddress
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Input, Job
from opendataflow_dagster.protocol.transfer import import_declared
from tests.factories import Flow
from tests.operator import Odf


@pytest.fixture
def run(flow: Flow) -> Odf:
    return Odf(url=flow.url)


@pytest.fixture
def code(flow: Flow) -> Registry:
    """As declared by code: raw -> tidy."""
    datasets = [flow.dataset("raw"), flow.dataset("tidy")]
    return Registry(
        datasets=tuple(Definition(dataset=dataset, connection=TableAddress()) for dataset in datasets),
        jobs=(
            Job(jobid=JobId("load"), outputs=(DatasetId("raw"),)),
            Job(jobid=JobId("clean"), inputs=(Input(datasetid=DatasetId("raw")),), outputs=(DatasetId("tidy"),)),
        ),
    )


# --- the whole path, with Dagster


def test_a_new_project_can_be_checked_and_applied(
    flow: Flow, run: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(run.json("init", "sales", "--dry-run")["files"]) == 9
    assert not Path("sales").exists()
    assert run.text("init", "sales").startswith("Wrote 9 files to sales. Next:\n")
    assert "sales/.gitignore already exists" in run.error("init", "sales")
    assert "NAME" not in "".join(path.read_text() for path in Path("sales").rglob("*") if path.is_file())

    monkeypatch.chdir("sales")
    # A separate process loads the definitions and needs the same ledger and home.
    monkeypatch.setenv("ODF_HOME", str(tmp_path / ".odf"))
    missing = run.json("check", exit_code=1)
    assert [(finding["problem"], finding["name"]) for finding in missing["findings"]] == [
        ("NOT_REGISTERED", name)
        for name in ("dataset orders", "dataset daily_totals", "job orders", "job daily_totals")
    ]
    assert run.json("dataset", "list") == {"datasets": []}, "a check registers nothing"
    assert run.json("apply")["new"] == [finding["name"] for finding in missing["findings"]]
    assert run.json("job", "show", "daily_totals")["inputs"] == [{"datasetid": "orders", "mapping": "equal"}]
    assert run.text("check") == "4 definitions equal in code and ledger.\n"


def test_code_that_cannot_be_loaded_is_a_one_line_error(run: Odf, tmp_path: Path) -> None:
    missing = tmp_path / "definitions.py"
    for command in ("check", "apply"):
        assert f"{missing} does not exist; pass the file that calls build_definitions" in run.error(
            command, str(missing)
        )
    broken = tmp_path / "broken.py"
    broken.write_text("print('hello')\nimport no_such_module\n")
    assert "No module named 'no_such_module'" in run.error("check", str(broken))
    for name in ("Sales", "1st", "a b"):
        assert "is not a valid project name" in run.error("init", str(tmp_path / name))


def test_init_refuses_an_unwritable_folder(run: Odf, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("")
    for words in (["--dry-run"], []):
        printed = run.error("init", str(tmp_path / "afile" / "sales"), *words)
        assert f"{tmp_path}/afile is not a writable folder" in printed
    (tmp_path / "sales").symlink_to("nowhere")
    assert "sales is not a writable folder" in run.error("init", str(tmp_path / "sales"))


def test_apply_reports_changes_and_asks_when_there_are_many(run: Odf, tmp_path: Path) -> None:
    few, much = tmp_path / "few.py", tmp_path / "much.py"
    for file, count in ((few, 2), (much, 30)):
        file.write_text(
            "from opendataflow_dagster import build_definitions, external_dataset\n"
            f"defs = build_definitions([external_dataset(f'set_{{number}}') for number in range({count})])\n"
        )
    assert run.text("apply", str(few)) == "Added: dataset set_0, dataset set_1.\n"
    assert run.text("apply", str(few)) == "2 unchanged.\n"
    assert "this would register 28 new and 0 changed DataSets and Jobs" in run.error("apply", str(much))
    assert len(run.json("dataset", "list")["datasets"]) == 2
    assert len(run.json("apply", str(much), "--dry-run")["new"]) == 28
    assert run.text("apply", str(much), "--yes").endswith("and 18 more; 2 unchanged.\n")


# --- the comparison


def test_code_and_ledger_that_agree_have_no_findings(flow: Flow, code: Registry) -> None:
    assert import_declared(flow.ledger, code).new == ("dataset raw", "dataset tidy", "job load", "job clean")
    flow.register("other: -> elsewhere")
    result = find_drift(flow.ledger, code)
    assert (result.findings, result.equal) == ((), 4)
    assert result.elsewhere == ("dataset elsewhere", "job other")


def test_check_names_drifted_fields_and_apply_fixes_them(flow: Flow, run: Odf, code: Registry) -> None:
    import_declared(flow.ledger, code)
    run.text("dataset", "set", "raw", "--owner", "grace", "--hostname", "db1")
    run.text("job", "set", "clean", "--lease", "2h")
    result = find_drift(flow.ledger, code)
    assert [(finding.problem, finding.name) for finding in result.findings] == [
        (DriftProblem.DIFFERS, "dataset raw"),
        (DriftProblem.DIFFERS, "job clean"),
    ]
    assert result.findings[0].detail == "owner: code None, ledger 'grace'"
    assert "'lease': 600.0" in result.findings[1].detail
    assert import_declared(flow.ledger, code).changed == ("dataset raw", "job clean")
    assert find_drift(flow.ledger, code).findings == ()
    # Code does not declare connections, so they are kept.
    assert run.json("dataset", "show", "raw")["connection"]["hostname"] == "db1"


def test_check_finds_contradictions_before_they_are_applied(flow: Flow, code: Registry) -> None:
    flow.register("back: tidy -> raw")
    (finding,) = [
        drift for drift in find_drift(flow.ledger, code).findings if drift.problem is DriftProblem.CONTRADICTS
    ]
    assert "DataSet raw has two producers, back and load" in finding.detail
    assert finding.step == "remove it from the outputs of one"


def test_check_reports_a_missing_root_of_ready_chunks(flow: Flow, code: Registry) -> None:
    import_declared(flow.ledger, code)
    flow.produce("load", "1")
    assert find_drift(flow.ledger, code).findings == ()
    (flow.root / "raw").rename(flow.root / "unmounted")
    (finding,) = find_drift(flow.ledger, code).findings
    assert (finding.problem, finding.name) == (DriftProblem.NO_LOCATION, "dataset raw")
    gone = replace(code.datasets[0].dataset, location="nosuchscheme://lake/raw")
    moved = replace(code, datasets=(replace(code.datasets[0], dataset=gone), code.datasets[1]))
    assert "cannot be reached" in [finding.detail for finding in find_drift(flow.ledger, moved).findings][-1]


def test_an_external_dataset_needs_no_root(flow: Flow) -> None:
    external = Dataset(datasetid=DatasetId("weather"))
    registry = Registry(datasets=(Definition(dataset=external, connection=TableAddress()),), jobs=())
    assert json.dumps(import_declared(flow.ledger, registry).new) == '["dataset weather"]'
    assert find_drift(flow.ledger, registry).findings == ()


def test_apply_sets_a_declared_limit_with_its_job(run: Odf, tmp_path: Path) -> None:
    file = tmp_path / "limited.py"
    file.write_text(
        "from opendataflow_dagster import build_definitions, dataset\n"
        "@dataset(concurrency=2)\n"
        "def made(context): ...\n"
        "defs = build_definitions([made])\n"
    )
    assert run.json("apply", str(file), "--dry-run")["new"] == ["dataset made", "job made"]
    assert run.text("apply", str(file)) == "Added: dataset made, job made.\n"
    assert run.json("job", "show", "made")["room"]["concurrency"] == 2
