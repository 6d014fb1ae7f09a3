"""odf diff: what differs between two versions of a chunk, or a version and what a failed attempt staged."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.manifest import CheckResult, File, NewManifest
from opendataflow_dagster.model.retention import Retention
from opendataflow_dagster.protocol.claim import claim
from opendataflow_dagster.protocol.publish import publish
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.rollback import rollback
from opendataflow_dagster.protocol.sweep import sweep
from opendataflow_dagster.warehouse.location import folder_of
from tests.factories import Flow, key
from tests.operator import Odf

DAY = "2024-01-01"
UNIQUE = CheckResult(name="unique(id)", passed=True, detail="3 rows, no repeated key")


def written(flow: Flow, rows: dict[str, list[Any]], taken: Claim) -> Path:
    (output,) = taken.outputs
    folder = Path(folder_of(str(flow.root / output), output, taken.dataid, taken.claim_id))
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.table(rows), folder / "part-0.parquet")
    return folder


def version(
    flow: Flow, rows: dict[str, list[Any]], *checks: CheckResult, jobid: str = "load", code: str | None = None
) -> Path:
    """Publish another version."""
    if flow.status(f"raw/{DAY}") == "READY" and jobid == "load":
        resubmit(flow.ledger, [key(f"raw/{DAY}")], by="test")
    taken = claim(flow.ledger, jobid, DAY)
    folder = written(flow, rows, taken)
    path = folder / "part-0.parquet"
    made = NewManifest(
        location=str(folder),
        files=(File(path=path.name, size=path.stat().st_size),),
        row_count=len(next(iter(rows.values()))),
        checks=checks,
        code_version=code,
    )
    publish(flow.ledger, taken, made)
    return folder


def staged(flow: Flow, rows: dict[str, list[Any]] | None, reason: str) -> None:
    """An attempt that fails after it wrote these rows."""
    resubmit(flow.ledger, [key(f"raw/{DAY}")], by="test")
    taken = claim(flow.ledger, "load", DAY)
    if rows is not None:
        written(flow, rows, taken)
    fail(flow.ledger, taken, reason)


@pytest.fixture
def raw(flow: Flow) -> Flow:
    flow.register("load: -> raw", "clean: raw -> tidy")
    return flow


@pytest.fixture
def odf(raw: Flow) -> Odf:
    return Odf(url=raw.url)


def test_the_current_version_is_compared_with_the_one_before_by_the_declared_key(raw: Flow, odf: Odf) -> None:
    version(raw, {"id": [1, 2, 3], "delay": [5, 6, 7]}, UNIQUE, code="a1")
    version(raw, {"id": [2, 3, 4], "delay": [6, 70, 8], "late": [1.5, None, None]}, UNIQUE, code="b2")
    printed = odf.text("diff", "raw", DAY)
    for said in (
        f"raw/{DAY}: version 1 -> version 2",
        "late    added",
        "1 added, 1 removed, 1 changed (by id)",
        "id=3  changed  delay: 7 -> 70",
        "id=4  added    delay=8",
        "id=1  removed  delay=5",
    ):
        assert said in printed
    assert [line.split() for line in printed.splitlines() if line.startswith("code")] == [["code", "a1", "b2"]]
    value = odf.json("diff", "raw", DAY)
    assert value["equal"] is False
    assert value["columns"] == [{"column": "late", "change": "added", "old": None, "new": "double"}]
    assert (value["rows"]["added"], value["rows"]["removed"], value["rows"]["changed"]) == (1, 1, 1)
    assert value["rows"]["changed_values"] == {"delay": 1}
    assert [check["name"] for check in value["old"]["checks"]] == ["unique(id)"]


def test_named_versions_are_compared_and_a_rolled_back_one_equals_its_original(raw: Flow, odf: Odf) -> None:
    version(raw, {"id": [1]})
    version(raw, {"id": [1, 2]})
    rollback(raw.ledger, key(f"raw/{DAY}"), 1, by="test")
    assert "version 2 -> version 3" in odf.text("diff", "raw", DAY)
    assert odf.json("diff", "raw", DAY, "--from", "1", "--to", "3", "--exit-code")["equal"] is True
    assert odf.json("diff", "raw", DAY, "--to", "2", "--exit-code", exit_code=1)["equal"] is False
    assert odf.json("diff", "raw", DAY, "--to", "2")["old"]["version"] == 1


def test_checks_inputs_and_code_stand_side_by_side(raw: Flow, odf: Odf) -> None:
    version(raw, {"id": [1]})
    few = CheckResult(name="row_count(2)", passed=False, detail="1 row (at least 2)", severity="warn")
    version(raw, {"id": [1]}, jobid="clean", code="a1")
    version(raw, {"id": [2]})
    resubmit(raw.ledger, [key(f"tidy/{DAY}")], by="test")
    version(raw, {"id": [1]}, few, jobid="clean", code="b2")
    printed = " ".join(odf.text("diff", "tidy", DAY).split())
    assert f"input raw/{DAY} 1 2" in printed
    assert "check row_count(2) warning: 1 row (at least 2)" in printed
    assert "code a1 b2" in printed
    assert "all equal" in printed
    assert "row_count(2) warning warn 1 row (at least 2)" in " ".join(odf.text("chunk", "show", "tidy", DAY).split())
    assert odf.json("diff", "tidy", DAY)["inputs"] == [
        {"chunk": {"datasetid": "raw", "dataid": DAY}, "old": "1", "new": "2"}
    ]


def test_a_given_key_replaces_the_declared_one(raw: Flow, odf: Odf) -> None:
    version(raw, {"id": [1, 1], "n": [1, 2], "x": [0, 0]})
    version(raw, {"id": [1, 1], "n": [1, 2], "x": [0, 9]})
    assert "whole rows are compared: no unique(...) check names a key" in odf.text("diff", "raw", DAY)
    assert "1 key (id) occurs more than once in the old rows, e.g. id=1" in odf.text("diff", "raw", DAY, "--key", "id")
    for words in (("--key", "id,n"), ("--key", "id", "--key", "n")):
        assert odf.json("diff", "raw", DAY, *words)["rows"]["changed_values"] == {"x": 1}
    assert "has no column nn" in odf.error("diff", "raw", DAY, "--key", "nn")


def test_a_nested_or_retyped_column_is_no_key(raw: Flow, odf: Odf) -> None:
    version(raw, {"id": [1], "tags": [["a"]]}, UNIQUE)
    version(raw, {"id": ["1"], "tags": [["a"]]}, UNIQUE)
    assert "column tags is nested (array<string>), so it cannot be a key" in odf.error(
        "diff", "raw", DAY, "--key", "tags"
    )
    value = odf.json("diff", "raw", DAY)
    assert value["columns"] == [{"column": "id", "change": "type", "old": "bigint", "new": "string"}]
    assert value["rows"]["note"] == "column id is not in both, or has another type"
    version(raw, {"other": [1]})
    assert odf.json("diff", "raw", DAY)["rows_note"].startswith("the two have no column in common")


def test_swept_and_missing_versions_are_refused_with_the_reason(raw: Flow, odf: Odf) -> None:
    assert f"there is no chunk raw/{DAY}" in odf.error("diff", "raw", DAY)
    raw.announce(f"raw/{DAY}", "FAILED")
    assert f"raw/{DAY} has no version" in odf.error("diff", "raw", DAY)
    raw.type("delete from dataflow.datastatus")
    version(raw, {"id": [1]})
    assert f"raw/{DAY} has nothing before version 1 to compare it with" in odf.error("diff", "raw", DAY)
    version(raw, {"id": [2]})
    last = version(raw, {"id": [3]})
    assert "has no version 9; it has version 1, 2, 3" in odf.error("diff", "raw", DAY, "--from", "9")
    now = timedelta(0)
    sweep(raw.ledger, "raw", Retention(versions=2, failed=now, grace=now), by="test")
    swept = f"raw/{DAY} version 1 was swept on {datetime.now(UTC):%Y-%m-%d}, so its rows are gone"
    assert swept in odf.error("diff", "raw", DAY, "--from", "1", exit_code=130)
    assert "1 added, 1 removed" in odf.text("diff", "raw", DAY)
    (last / "part-0.parquet").unlink()
    assert "part-0.parquet is missing; restore the files" in odf.error("diff", "raw", DAY, exit_code=130)


def test_what_a_failed_attempt_staged_is_compared_with_the_current_version(raw: Flow, odf: Odf) -> None:
    version(raw, {"id": [1, 2]}, UNIQUE)
    assert "no attempt that ended without a version" in odf.error("diff", "raw", DAY, "--staged")
    staged(raw, {"id": [1, 1]}, "unique(id): 2 of 2 rows fail")
    printed = odf.text("diff", "raw", DAY, "--staged")
    assert f"raw/{DAY}: version 1 -> claim 2, staged" in printed
    assert "not published: unique(id): 2 of 2 rows fail" in printed
    assert "1 key (id) occurs more than once in the new rows, e.g. id=1" in printed
    assert "1 added, 1 removed" in printed
    staged(raw, None, "OSError: disk full")
    error = odf.error("diff", "raw", DAY, "--staged")
    assert "claim 3 left no files" in error
    assert "It ended with: OSError: disk full" in error
    assert "cannot be combined" in odf.error("diff", "raw", DAY, "--staged", "--to", "1")


def test_the_story_of_a_failed_or_stale_chunk_has_the_differences_when_asked(raw: Flow, odf: Odf) -> None:
    version(raw, {"id": [1], "n": [1]}, UNIQUE)
    version(raw, {"id": [1]}, jobid="clean")
    assert "The chunk is neither failed nor stale" in odf.text("chunk", "show", "raw", DAY, "--diff")
    version(raw, {"id": [1], "n": [2]}, UNIQUE)
    stale = odf.text("chunk", "show", "tidy", DAY, "--diff")
    assert f"raw/{DAY}: version 1 -> version 2" in stale
    assert "n: 1 -> 2" in stale
    assert "diffs" not in odf.json("chunk", "show", "tidy", DAY)
    staged(raw, {"id": [1], "n": [3]}, "between(n, 0, 2): 1 of 1 row fails")
    (attached,) = odf.json("chunk", "show", "raw", DAY, "--diff")["diffs"]
    assert attached["diff"]["rows"]["changed_values"] == {"n": 1}
    staged(raw, None, "OSError: disk full")
    failed = odf.text("chunk", "show", "raw", DAY, "--diff")
    assert f"No difference to show: raw/{DAY}: claim 5 left no files" in failed


def test_versions_that_are_not_parquet_are_equal_only_if_their_content_is_known_to_be(raw: Flow, odf: Odf) -> None:
    raw.produce("load", DAY)
    resubmit(raw.ledger, [key(f"raw/{DAY}")], by="test")
    raw.produce("load", DAY)
    assert odf.json("diff", "raw", DAY, "--exit-code", exit_code=1)["rows"] is None
    rollback(raw.ledger, key(f"raw/{DAY}"), 1, by="test")
    printed = odf.text("diff", "raw", DAY, "--from", "1", "--exit-code")
    assert "version 1 has files that are not Parquet (part-0); both have the same content" in printed


def test_a_truncated_file_is_an_error_and_not_a_difference(raw: Flow, odf: Odf) -> None:
    folder = version(raw, {"id": [1]})
    version(raw, {"id": [2]})
    path = folder / "part-0.parquet"
    path.write_bytes(b"x" * path.stat().st_size)
    assert "part-0.parquet cannot be read as Parquet" in odf.error("diff", "raw", DAY, exit_code=130)


def test_values_and_column_names_never_control_the_terminal(raw: Flow, odf: Odf) -> None:
    version(raw, {"id": [1], "b\x1b[2Jd": ["\x1b[31m"]}, UNIQUE)
    version(raw, {"id": [1], "b\x1b[2Jd": ["\u202eabc"]}, UNIQUE)
    for words in (("diff", "raw", DAY), ("diff", "raw", DAY, "--json")):
        assert not {"\x1b", "\u202e"} & set(odf.text(*words))


def test_small_versions_are_compared_without_spark(raw: Flow) -> None:
    version(raw, {"id": [1]})
    version(raw, {"id": [2]})
    script = (
        "import sys; from opendataflow_dagster.cli.main import odf;"
        f"odf(['diff', 'raw', '{DAY}'], standalone_mode=False);"
        "print([name for name in ('dagster', 'pyspark', 'pandas') if name in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ODF_DATABASE_URL": raw.url},
    )
    assert "1 added, 1 removed" in printed.stdout
    assert printed.stdout.splitlines()[-1] == "[]"
