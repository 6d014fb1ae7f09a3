"""The reference lists exactly what exists, and no page needs an internal module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import opendataflow_dagster
from opendataflow_dagster.model import errors, problems
from opendataflow_dagster.model.status import TRANSITIONS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
#: What an environment variable of this project looks like, as a string in the code.
VARIABLE = re.compile(r'"(ODF_[A-Z_]+[A-Z]|PASSKEY)"')


def page(name: str) -> str:
    return (DOCS / name).read_text()


def parsed_testing_module() -> ast.Module:
    # Parsed, not imported: it loads Spark.
    return ast.parse((ROOT / "opendataflow_dagster" / "testing.py").read_text())


def public_definitions(body: list[ast.stmt]) -> set[str]:
    definitions = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return {name for name in definitions if not name.startswith("_")}


def test_the_python_api_lists_exactly_the_public_names() -> None:
    package, testing = page("reference/python.md").split("\n## opendataflow_dagster.testing\n")

    assert sorted(re.findall(r"^#### `(\w+)`$", package, re.MULTILINE)) == sorted(opendataflow_dagster.__all__)
    assert set(re.findall(r"^#### `(\w+)`$", testing, re.MULTILINE)) == public_definitions(parsed_testing_module().body)


def test_the_python_api_lists_exactly_the_methods_of_a_test_pipeline() -> None:
    (pipeline,) = [
        node for node in parsed_testing_module().body if isinstance(node, ast.ClassDef) and node.name == "Pipeline"
    ]
    _, _, section = page("reference/python.md").partition("#### `Pipeline`")
    listed = re.findall(r"^\| `(\w+)\(", section.partition("\n#### ")[0], re.MULTILINE)

    assert set(listed) == public_definitions(pipeline.body)


def test_the_settings_are_exactly_the_variables_that_the_code_reads() -> None:
    sources = [*(ROOT / "opendataflow_dagster").rglob("*.py"), *(ROOT / "resources").rglob("*.py")]
    read = {name for source in sources for name in VARIABLE.findall(source.read_text())}
    # Built from a name and a suffix.
    read |= {f"{name}_{suffix}" for name in ("ODF_PASSPHRASE", "ODF_NEW_PASSPHRASE") for suffix in ("FILE", "COMMAND")}
    tables = [line for line in page("reference/settings.md").splitlines() if line.startswith("| `")]
    listed = {name for line in tables for name in re.findall(r"`(ODF_\w+|PASSKEY)`", line.split("|")[1])}

    assert listed == read


def test_the_exit_codes_are_those_of_the_errors() -> None:
    table, _, _ = page("reference/codes.md").partition("### `odf run`")
    listed = {name: int(code) for code, name in re.findall(r"^\| (\d+) \| `(\w+)` ", table, re.MULTILINE)}
    own = {
        name: error.exit_code
        for name, error in vars(errors).items()
        if isinstance(error, type) and issubclass(error, errors.OpenDataFlowError) and "exit_code" in vars(error)
    }

    assert listed == own


def test_the_retryable_errors_are_named() -> None:
    retryable = {
        name
        for name, error in vars(errors).items()
        if isinstance(error, type) and issubclass(error, errors.OpenDataFlowError) and "retryable" in vars(error)
    } - {"OpenDataFlowError"}
    (sentence,) = re.findall(r"next\. (.*?) are \*\*retryable\*\*", page("reference/codes.md"), re.DOTALL)

    assert set(re.findall(r"`(\w+)`", sentence)) == retryable


def test_every_problem_is_listed_with_its_meaning() -> None:
    _, _, section = page("reference/codes.md").partition("## Problems")

    assert re.findall(r"^\| ([A-Z_]+) \|", section, re.MULTILINE) == list(problems.SENTENCES)


def test_the_documented_transitions_are_those_of_the_state_machine() -> None:
    rows = re.findall(r"^\| ([A-Z]+) \| ([A-Z, ]+) \|$", page("concepts/path-of-a-chunk.md"), re.MULTILINE)

    assert {old: set(new.split(", ")) for old, new in rows} == {
        old.value: {status.value for status in new} for old, new in TRANSITIONS.items()
    }


def test_the_pictures_name_every_status() -> None:
    drawn = set(re.findall(r">([A-Z]{4,})<", page("images/state-machine.svg")))

    assert drawn == {status.value for status in TRANSITIONS}


def test_the_monitoring_page_lists_exactly_the_metrics() -> None:
    source = (ROOT / "opendataflow_dagster" / "cli" / "metrics.py").read_text()
    rows = [line.split("|")[1] for line in page("operations/monitoring.md").splitlines() if line.startswith("| `odf_")]
    listed = {name for row in rows for name in re.findall(r"`(odf_\w+)`", row)}

    assert listed == set(re.findall(r'"(odf_\w+)"', source))


def test_every_test_that_proves_a_guarantee_exists() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", page("concepts/guarantees.md")))

    assert len(named) > 30
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_sends_a_reader_to_an_internal_module(path: Path) -> None:
    imports = re.findall(r"(?:from|import) (opendataflow_dagster[\w.]*)", path.read_text())

    assert set(imports) <= {"opendataflow_dagster", "opendataflow_dagster.testing"}


def test_every_page_that_the_code_names_exists() -> None:
    sources = [*(ROOT / "opendataflow_dagster").rglob("*.py"), *(ROOT / "opendataflow_dagster").rglob("*.sql")]
    named = {name for source in sources for name in re.findall(r"docs/[\w/-]+\.md", source.read_text())}

    assert sorted(name for name in named if not (ROOT / name).is_file()) == []
