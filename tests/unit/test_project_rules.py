"""Rules of the package that no type checker or linter enforces."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from opendataflow_dagster.ledger.sql import statements

PACKAGE = Path(__file__).resolve().parents[2] / "opendataflow_dagster"
LEDGER = PACKAGE / "ledger"
MODULES = sorted(PACKAGE.rglob("*.py"))
OUTSIDE = [path for path in MODULES if LEDGER not in path.parents]

#: What runs a statement by its name.
RUNNERS = {"rows", "one", "value", "run", "changed"}
#: What only the ledger needs.
INTERNALS = {"Row", "rows", "sql", "statements"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def statements_by_name(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
        if called in RUNNERS and texts & statements().keys():
            yield f"line {node.lineno}: {ast.unparse(node)}"


def ledger_internals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and "ledger" in (node.module or "").split("."):
            yield from (
                f"line {node.lineno}: {alias.name}"
                for alias in node.names
                if alias.name in INTERNALS or (node.module or "").split(".")[-1] in ("rows", "sql")
            )


@pytest.mark.parametrize("path", OUTSIDE, ids=name_of)
def test_only_the_ledger_names_a_statement_by_a_string(path: Path) -> None:
    tree = ast.parse(path.read_text())
    violations = [*statements_by_name(tree), *ledger_internals(tree)]
    assert violations == []


def test_every_statement_is_used() -> None:
    constants = {
        node.value
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
    }
    # The name of a release is composed.
    assert {name for name in statements() if name not in constants and not name.startswith("release_")} == set()


def test_two_classes_never_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name_of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_variable_is_named_for_what_it_is() -> None:
    root = PACKAGE.parent
    nameless = [
        f"{path.relative_to(root)}, line {node.lineno}"
        for folder in ("opendataflow_dagster", "tests", "bench", "examples", "assets", "resources", "sensors")
        for path in sorted((root / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Name) and node.id == "one") or (isinstance(node, ast.arg) and node.arg == "one")
    ]
    assert nameless == []


@pytest.mark.parametrize("path", sorted((PACKAGE / "cli").glob("*.py")), ids=name_of)
def test_only_one_module_of_the_command_line_prints(path: Path) -> None:
    """It shows control characters escaped."""
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    printing = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write", "traceback.print_exc"}
    assert path.name == "output.py" or not printing & set(calls)
