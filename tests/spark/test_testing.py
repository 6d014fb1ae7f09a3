"""opendataflow_dagster.testing: it builds the chunks that a test describes, and its assertions show what differs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from opendataflow_dagster import ChunkContext, daily, dataset, external_dataset, not_null
from opendataflow_dagster.model.errors import InvalidInput, UnknownName
from opendataflow_dagster.testing import Pipeline, assert_rows, chunk_context, local_spark, pipeline
from tests.operator import Odf

DAYS = daily("2024-01-01", "2024-01-31")
DAY = "2024-01-01"

landing = external_dataset("landing", partitions=DAYS, location="/nowhere")


@dataset(partitions=DAYS, checks=[not_null("id")], root="/nowhere")
def tidy(landing: DataFrame, context: ChunkContext) -> DataFrame:
    return landing.selectExpr("id", f"'{context.dataid}' as day")


@pytest.fixture
def flow(url: str, tmp_path: Path, spark: SparkSession) -> Iterator[Pipeline]:
    with pipeline(landing, tidy, url=url, root=tmp_path) as made:
        yield made


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "FAILED", "RESUBMIT", "HOLD", "SKIPPED"])
def test_a_chunk_can_be_put_into_any_status(flow: Pipeline, status: str) -> None:
    flow.put(f"tidy/{DAY}", status)

    flow.assert_status({f"tidy/{DAY}": status, "tidy/2024-01-02": None})


def test_given_rows_are_read_and_made_chunks_are_published_below_the_tests_own_root(
    flow: Pipeline, tmp_path: Path
) -> None:
    assert "DATA_NOT_READY" in flow.refusal(f"tidy/{DAY}")
    flow.given(f"landing/{DAY}", [(1,), (2,)], "id int")
    flow.make(f"tidy/{DAY}")
    flow.assert_rows(f"tidy/{DAY}", [(2, DAY), (1, DAY)])
    assert {path.name for path in tmp_path.iterdir()} == {"landing", "tidy"}
    # A new request makes it again; a failed check leaves the previous version.
    flow.given(f"landing/{DAY}", [(None,)], "id int")
    assert "not_null(id)" in flow.refusal(f"tidy/{DAY}")
    flow.assert_status({f"tidy/{DAY}": "FAILED"})
    flow.assert_rows(f"tidy/{DAY}", [(2, DAY), (1, DAY)])
    # The given rows, not those of its function.
    flow.given(f"tidy/{DAY}", [(7, "x")], "id int, day string")
    flow.assert_rows(f"tidy/{DAY}", [(7, "x")])


def test_a_failed_assertion_shows_the_difference(flow: Pipeline) -> None:
    flow.given(f"tidy/{DAY}", [(1, "a"), (1, "a"), (2, "b")], "id int, day string")
    with pytest.raises(AssertionError) as caught:
        flow.assert_rows(f"tidy/{DAY}", [(1, "a"), (3, "c")])
    assert str(caught.value) == (
        "the rows (id, day) differ:\nmissing: (3, 'c')\nunexpected: (1, 'a')\nunexpected: (2, 'b')"
    )
    with pytest.raises(AssertionError, match=f"tidy/{DAY} is READY, expected FAILED"):
        flow.assert_status({f"tidy/{DAY}": "FAILED"})
    with pytest.raises(AssertionError, match="tidy/2024-01-02 has no version; its status is None"):
        flow.frame("tidy/2024-01-02")
    with pytest.raises(AssertionError, match="tidy/2024-01-02 was not made: DATA_NOT_READY"):
        flow.make("tidy/2024-01-02")
    flow.given(f"landing/{DAY}", [(1,)], "id int")
    with pytest.raises(AssertionError, match="was made, but a refusal was expected"):
        flow.refusal(f"tidy/{DAY}")


def test_invalid_setups_are_refused_with_the_reason(flow: Pipeline) -> None:
    with pytest.raises(UnknownName, match="tody is not in this pipeline; it has landing, tidy"):
        flow.put(f"tody/{DAY}", "FAILED")
    with pytest.raises(InvalidInput, match=r"use given\(...\) for READY"):
        flow.put(f"tidy/{DAY}", "READY")
    with pytest.raises(InvalidInput, match="landing is external"):
        flow.put(f"landing/{DAY}", "FAILED")
    with pytest.raises(InvalidInput, match="rows without a schema"):
        flow.given(f"landing/{DAY}", [(1,)])


def test_a_function_with_a_context_can_be_called_directly(spark: SparkSession) -> None:
    made = tidy(spark.createDataFrame([(1,)], "id int"), chunk_context(f"tidy/{DAY}", spark))

    assert isinstance(made, DataFrame)
    assert_rows(made, [(1, DAY)])
    assert local_spark() is spark


def test_the_tests_of_a_new_project_pass_on_a_temporary_ledger(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Odf(url=url).text("init", "sales")
    (tmp_path / "left").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "left"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd="sales",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert list((tmp_path / "left").glob("odf-*")) == []
