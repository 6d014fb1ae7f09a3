"""docs/architecture.md tells how one chunk goes through the package; a trace of a real run tells whether it is true."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import DataFrame

from opendataflow_dagster import daily, dataset, row_count
from opendataflow_dagster.engine.chunk import ChunkContext
from tests.dagster_project import Project
from tests.walk import PACKAGE, traced

DAYS = daily("2024-01-01", "2024-01-31")


@dataset(partitions=DAYS)
def raw(context: ChunkContext) -> DataFrame:
    return context.spark.range(3)


@dataset(partitions=DAYS, checks=[row_count(1)])
def clean(raw: DataFrame) -> DataFrame:
    return raw.where("id > 0")


def test_the_architecture_lists_the_calls_of_a_chunk_in_their_order_and_counts_them(project: Project) -> None:
    project.build(raw, clean)
    assert project.launch("raw", "2024-01-01").success

    with traced() as walk:
        assert project.launch_range("clean", "2024-01-01", "2024-01-01").success

    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    listed = re.findall(r"(?m)^\d+\. `([^`]+)`", page)
    assert listed == [function for function in walk.functions if function in listed]
    figures = re.search(r"(\d+) different calls[^.]*, (\d+) of them into another room", page)
    assert figures is not None
    made = walk.until("ledger.claims.publish")
    # A tenth more or less is no other architecture.
    assert [len(made.calls), made.crossings] == pytest.approx([int(figure) for figure in figures.groups()], rel=0.1)
