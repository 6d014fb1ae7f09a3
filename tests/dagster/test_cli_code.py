"""A project of one's own, and its code against the ledger: `odf init`, `check` and `apply`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opendataflow_dagster.insight.drift import DriftProblem, find_drift
from opendataflow_dagster.model.dataset import Dataset
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Input, Job
from opendataflow_dagster.model.registry import DatasetConnection, DatasetDefinition, Registry
from opendataflow_dagster.protocol.transfer import import_declared
from tests.factories import Flow
from tests.operator import Odf


@pytest.fixture
def run(flow: Flow) -> Odf:
    return Odf(url=flow.url)


@pytest.fixture
def code(flow: Flow) -> Registry:
    """What code would declare: raw -> tidy."""
    datasets = [flow.dataset("raw"), flow.dataset("tidy")]
    return Registry(
        datasets=tuple(DatasetDefinition(dataset=one, connection=DatasetConnection()) for one in datasets),
        jobs=(
            Job(jobid=JobId("load"), outputs=(DatasetId("raw"),)),
            Job(jobid=JobId("clean"), inputs=(Input(datasetid=DatasetId("raw")),), outputs=(DatasetId("tidy"),)),
        ),
    )


# --- the whole way, with Dagster


def test_a_new_project_is_whole_and_becomes_what_the_ledger_has(
    flow: Flow, run: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(run.json("init", "sales", "--dry-run")["files"]) == 8
    assert not Path("sales").exists()
    assert run.text("init", "sales").startswith("Wrote 8 files into sales. Then:\n")
    assert "sales/.gitignore is there already" in run.error("init", "sales")
    assert "NAME" not in "".join(one.read_text() for one in Path("sales").rglob("*") if one.is_file())

    monkeypatch.chdir("sales")
    # The definitions are loaded in a process of their own, which finds the same ledger and the same home.
    monkeypatch.setenv("ODF_HOME", str(tmp_path / ".odf"))
    missing = run.json("check", exit_code=1)
    assert [(one["problem"], one["name"]) for one in missing["findings"]] == [
        ("NOT_REGISTERED", name)
        for name in ("dataset orders", "dataset daily_totals", "job orders", "job daily_totals")
    ]
    assert run.json("dataset", "list") == {"datasets": []}, "a check registers nothing"
    assert run.json("apply")["new"] == [one["name"] for one in missing["findings"]]
    assert run.json("job", "show", "daily_totals")["inputs"] == [{"datasetid": "orders", "mapping": "equal"}]
    assert run.text("check") == "4 definitions equal in code and ledger.\n"


def test_code_that_cannot_be_loaded_is_one_sentence(run: Odf, tmp_path: Path) -> None:
    assert "there is no definitions.py here" in run.error("check", str(tmp_path / "definitions.py")).replace(
        str(tmp_path) + "/", ""
    )
    assert "there is no" in run.error("apply", str(tmp_path / "definitions.py"))
    broken = tmp_path / "broken.py"
    broken.write_text("print('hello')\nimport no_such_module\n")
    assert "No module named 'no_such_module'" in run.error("check", str(broken))
    for name in ("Sales", "1st", "a b"):
        assert "cannot be the name of a project" in run.error("init", str(tmp_path / name))


def test_a_project_is_not_begun_where_nothing_can_be_written(run: Odf, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("")
    for words in (["--dry-run"], []):
        said = run.error("init", str(tmp_path / "afile" / "sales"), *words)
        assert f"{tmp_path}/afile is no folder that you may write into" in said
    (tmp_path / "sales").symlink_to("nowhere")
    assert "sales is no folder" in run.error("init", str(tmp_path / "sales"))


def test_apply_says_what_it_did_and_asks_where_that_is_much(run: Odf, tmp_path: Path) -> None:
    few, much = tmp_path / "few.py", tmp_path / "much.py"
    for file, count in ((few, 2), (much, 30)):
        file.write_text(
            "from opendataflow_dagster import build_definitions, external_dataset\n"
            f"defs = build_definitions([external_dataset(f'set_{{one}}') for one in range({count})])\n"
        )
    assert run.text("apply", str(few)) == "New: dataset set_0, dataset set_1.\n"
    assert run.text("apply", str(few)) == "2 as before.\n"
    assert "this would register 28 new and 0 changed DataSets and Jobs" in run.error("apply", str(much))
    assert len(run.json("dataset", "list")["datasets"]) == 2
    assert len(run.json("apply", str(much), "--dry-run")["new"]) == 28
    assert run.text("apply", str(much), "--yes").endswith("and 18 more; 2 as before.\n")


# --- the comparison


def test_code_and_ledger_that_agree_have_no_findings(flow: Flow, code: Registry) -> None:
    assert import_declared(flow.ledger, code).new == ("dataset raw", "dataset tidy", "job load", "job clean")
    flow.register("other: -> elsewhere")
    found = find_drift(flow.ledger, code)
    assert (found.findings, found.equal) == ((), 4)
    assert found.elsewhere == ("dataset elsewhere", "job other")


def test_drift_is_named_field_by_field_and_apply_ends_it(flow: Flow, run: Odf, code: Registry) -> None:
    import_declared(flow.ledger, code)
    run.text("dataset", "set", "raw", "--owner", "grace", "--hostname", "db1")
    run.text("job", "set", "clean", "--lease", "2h")
    found = find_drift(flow.ledger, code)
    assert [(one.problem, one.name) for one in found.findings] == [
        (DriftProblem.DIFFERS, "dataset raw"),
        (DriftProblem.DIFFERS, "job clean"),
    ]
    assert found.findings[0].detail == "owner: code None, ledger 'grace'"
    assert "'lease': 600.0" in found.findings[1].detail
    assert import_declared(flow.ledger, code).changed == ("dataset raw", "job clean")
    assert find_drift(flow.ledger, code).findings == ()
    # Code does not say how scripts connect; that stays.
    assert run.json("dataset", "show", "raw")["connection"]["hostname"] == "db1"


def test_what_contradicts_the_rest_of_the_ledger_is_found_before_it_is_applied(flow: Flow, code: Registry) -> None:
    flow.register("back: tidy -> raw")
    (finding,) = [one for one in find_drift(flow.ledger, code).findings if one.problem is DriftProblem.CONTRADICTS]
    assert "DataSet raw has two producers, back and load" in finding.detail
    assert finding.step == "let one of them make another DataSet"


def test_a_root_that_is_gone_while_chunks_are_ready_is_found(flow: Flow, code: Registry) -> None:
    import_declared(flow.ledger, code)
    flow.produce("load", "1")
    assert find_drift(flow.ledger, code).findings == ()
    (flow.root / "raw").rename(flow.root / "unmounted")
    (finding,) = find_drift(flow.ledger, code).findings
    assert (finding.problem, finding.name) == (DriftProblem.NO_LOCATION, "dataset raw")
    gone = replace(code.datasets[0].dataset, location="nosuchscheme://lake/raw")
    moved = replace(code, datasets=(replace(code.datasets[0], dataset=gone), code.datasets[1]))
    assert "cannot be looked at" in [one.detail for one in find_drift(flow.ledger, moved).findings][-1]


def test_a_dataset_that_code_declares_external_needs_no_root(flow: Flow) -> None:
    external = Dataset(datasetid=DatasetId("weather"))
    registry = Registry(datasets=(DatasetDefinition(dataset=external, connection=DatasetConnection()),), jobs=())
    assert json.dumps(import_declared(flow.ledger, registry).new) == '["dataset weather"]'
    assert find_drift(flow.ledger, registry).findings == ()


def test_a_limit_that_code_declares_is_rehearsed_and_applied_with_its_job(run: Odf, tmp_path: Path) -> None:
    file = tmp_path / "limited.py"
    file.write_text(
        "from opendataflow_dagster import build_definitions, dataset\n"
        "@dataset(concurrency=2)\n"
        "def made(context): ...\n"
        "defs = build_definitions([made])\n"
    )
    assert run.json("apply", str(file), "--dry-run")["new"] == ["dataset made", "job made"]
    assert run.text("apply", str(file)) == "New: dataset made, job made.\n"
    assert run.json("job", "show", "made")["room"]["concurrency"] == 2
