"""The project around the code: layout, pins, make targets, prerequisites and documents."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TARGETS = ("help", "demo", "test", "test-fast", "check", "chaos", "docs", "bench", "dev", "clean", "constraints")
LAYOUT = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "mkdocs.yml",
    "pyproject.toml",
    "constraints.txt",
    "workspace.yaml",
    "definitions.py",
    "opendataflow_dagster",
    "opendataflow_dagster/testing.py",
    "assets",
    "resources",
    "sensors",
    "dagster_home/dagster.yaml",
    "tests",
    "bench",
    "docs",
    "examples",
)


def run(*command: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without the variables of a surrounding `make`."""
    kept = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept | changes


# --- layout and definitions


@pytest.mark.parametrize("entry", LAYOUT)
def test_the_layout_is_complete(entry: str) -> None:
    assert (ROOT / entry).exists()


# --- pins, and what must not be in the repository


def test_every_constraint_is_one_exact_pin_without_an_address() -> None:
    comment, *pins = (ROOT / "constraints.txt").read_text().splitlines()

    assert "make constraints" in comment
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", pin)] == []


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing is tracked")
    listed = run("git", "-c", "safe.directory=*", "ls-files", "-z")
    assert listed.returncode == 0, listed.stderr
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def configured_package_indexes() -> set[str]:
    """The package indexes of this machine's pip besides the public one."""
    settings = run(sys.executable, "-m", "pip", "config", "list").stdout.splitlines()
    found: set[str] = set()
    for setting in settings:
        name, _, value = setting.partition("=")
        if name.rpartition(".")[2] in {"index-url", "extra-index-url", "find-links"}:
            found |= {place.removeprefix("file://") for place in str(ast.literal_eval(value)).split()}
    return {place for place in found if "pypi.org" not in place}


def test_no_tracked_file_names_a_package_index_or_a_path_of_this_machine() -> None:
    folders = {ROOT, Path.home()} | ({Path(sys.prefix)} if sys.prefix != sys.base_prefix else set())
    own_path = re.compile(rf"(?<![\w./-])({'|'.join(re.escape(str(folder)) for folder in folders)})/")
    index_option = re.compile(r"(?i)(extra|--|pip)[-_]?index[-_]url|find[-_]links")
    indexes = configured_package_indexes()

    # Only the names are reported: an index address can carry a password.
    offending = [
        path.name
        for path in tracked_files()
        if path != Path(__file__).resolve()
        and (text := path.read_text(encoding="utf-8", errors="replace"))
        and (own_path.search(text) or index_option.search(text) or any(index in text for index in indexes))
    ]

    assert offending == []


# --- make


@pytest.mark.parametrize("target", TARGETS)
def test_make_help_lists_the_target_and_make_knows_it(target: str) -> None:
    assert re.search(rf"(?m)^make {target} ", run("make", env=environment()).stdout)

    assert run("make", "--dry-run", target, env=environment()).returncode == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_a_document_names_exists(document: Path) -> None:
    named = set(re.findall(r"(?m)(?:`|^\s*(?:\$ )?)make ([a-z-]+)", document.read_text()))

    assert named <= set(TARGETS)


def test_ci_runs_make_test_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    commands = [line for line in script.read_text().splitlines() if not line.startswith(("#", "set ", "cd "))]

    assert os.access(script, os.X_OK)
    assert commands == ["make test"]


# --- prerequisites

PYTHON_3_11 = 'case "$2" in *print*) echo 3.11 ;; esac'
PYTHON_3_9 = 'case "$2" in *print*) echo 3.9 ;; esac'
PYTHON_WITHOUT_VENV = 'case "$2" in *print*) echo 3.11 ;; *) exit 1 ;; esac'
JAVA_17 = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"
JAVA_11 = "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2"
JAVA_8 = "echo 'java version \"1.8.0_401\"' >&2"
DOES_NOT_RUN = "exit 127"


def prerequisites(folder: Path, *arguments: str, java_home: str = "", **stubs: str) -> subprocess.CompletedProcess[str]:
    """bin/prerequisites on a machine that has the stubs and nothing else."""
    for name, script in stubs.items():
        stub = folder / name.replace("python3_", "python3.")
        stub.write_text(f"#!/bin/sh\n{script}\n")
        stub.chmod(0o755)
    env = {"PATH": str(folder)} | ({"JAVA_HOME": java_home} if java_home else {})
    return run(ROOT / "bin" / "prerequisites", *arguments, env=env)


def test_supported_python_and_java_are_accepted_silently(tmp_path: Path) -> None:
    result = prerequisites(tmp_path, python3=PYTHON_3_11, java=JAVA_17)

    assert (result.returncode, result.stdout, result.stderr) == (0, "python3\n", "")


def test_a_newer_python_is_used_when_python3_is_too_old(tmp_path: Path) -> None:
    result = prerequisites(tmp_path, python3=PYTHON_3_9, python3_13=DOES_NOT_RUN, python3_11=PYTHON_3_11, java=JAVA_17)

    assert (result.returncode, result.stdout) == (0, "python3.11\n")


def test_a_requested_python_is_not_replaced_by_another(tmp_path: Path) -> None:
    result = prerequisites(tmp_path, "python3.9", python3_9=PYTHON_3_9, python3=PYTHON_3_11, java=JAVA_17)

    assert result.returncode != 0
    assert "python3.9 is 3.9" in result.stderr


def test_java_home_takes_precedence(tmp_path: Path) -> None:
    result = prerequisites(tmp_path, java_home=str(tmp_path / "gone"), python3=PYTHON_3_11, java=JAVA_17)

    assert result.returncode != 0
    assert "gone/bin/java does not run" in result.stderr


@pytest.mark.parametrize(
    ("stubs", "said"),
    [
        pytest.param({"java": JAVA_17}, "Python 3.11 or newer is needed, but python3 does", id="no python"),
        pytest.param(
            {"python3": PYTHON_3_9, "java": JAVA_17},
            "Python 3.11 or newer is needed, but python3 is 3.9",
            id="old python",
        ),
        pytest.param({"python3": PYTHON_WITHOUT_VENV, "java": JAVA_17}, "Python's venv module is needed", id="no venv"),
        pytest.param({"python3": PYTHON_3_11}, "Java 17 or newer is needed, but java does", id="no java"),
        pytest.param(
            {"python3": PYTHON_3_11, "java": JAVA_11},
            "Java 17 or newer is needed, but java is 11.0.2",
            id="java 11",
        ),
        pytest.param(
            {"python3": PYTHON_3_11, "java": JAVA_8},
            "Java 17 or newer is needed, but java is 1.8.0_401",
            id="java 8",
        ),
    ],
)
def test_a_missing_or_old_prerequisite_is_one_sentence_with_the_remedy(
    tmp_path: Path, stubs: dict[str, str], said: str
) -> None:
    result = prerequisites(tmp_path, **stubs)

    assert result.returncode != 0
    assert result.stdout == ""
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith(said)
    assert "install" in sentence


# --- documents


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_points_to_a_file_that_exists(document: Path) -> None:
    targets = re.findall(r"\]\(<?([^)\s>]+)", document.read_text())
    relative = [target.partition("#")[0] for target in targets if not re.match(r"[a-z][a-z+.-]*:|#", target)]

    assert [target for target in relative if not (document.parent / target).exists()] == []


DEBIAN = Path("/etc/debian_version").exists()


@pytest.mark.parametrize(
    ("user", "ci", "skipped"),
    [
        ("1000", "", True),
        ("1000", "true", False),
        pytest.param("0", "", False, marks=pytest.mark.skipif(not DEBIAN, reason="apt-get is Debian's")),
    ],
    ids=["a person without rights", "CI", "root, and the installation fails"],
)
def test_ui_tests_are_skipped_only_where_a_person_must_install_the_browser(
    tmp_path: Path, user: str, ci: str, skipped: bool
) -> None:
    for name, script in (("id", f"echo {user}"), ("flock", ""), ("apt-get", "exit 100")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    found = subprocess.run([ROOT / "bin" / "program", "chromium"], env={"PATH": str(tmp_path), "CI": ci}, check=False)

    assert (found.returncode == 77) == skipped
    assert found.returncode != 0
