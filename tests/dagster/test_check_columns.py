"""The columns of a check are compared with a declared schema when the definitions load, as Spark compares names."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from opendataflow_dagster import Declaration, accepted, dataset, not_null
from opendataflow_dagster.engine.dataset_graph import build_graph
from opendataflow_dagster.model.check import Check, Figures
from opendataflow_dagster.model.errors import InvalidDefinition


def declared(check: Check) -> Declaration:
    schema = StructType([StructField("Id", LongType()), StructField("name", StringType())])
    return dataset("typed", schema=schema, checks=[check])(lambda: None)


@pytest.mark.parametrize("check", [not_null("id", "NAME"), accepted("Name", ["a"])], ids=lambda check: check.name)
def test_a_column_name_matches_a_schema_in_any_case(check: Check) -> None:
    assert build_graph([declared(check)], "/tmp").nodes


@dataclass(frozen=True, kw_only=True)
class OwnCheck(Check):
    def judge(self, figures: Figures) -> tuple[bool, str]:
        return True, ""


def test_a_check_that_an_author_wrote_is_compared_too() -> None:
    assert build_graph([declared(OwnCheck(name="own", columns=("NAME",), column_types=("string",)))], "/tmp").nodes
    with pytest.raises(InvalidDefinition, match="DataSet typed: check own needs column nome, which does not exist"):
        build_graph([declared(OwnCheck(name="own", columns=("nome",)))], "/tmp")
    with pytest.raises(InvalidDefinition, match="check own needs a date column, but Name is string"):
        build_graph([declared(OwnCheck(name="own", columns=("Name",), column_types=("date",)))], "/tmp")
