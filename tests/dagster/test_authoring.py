"""What an author declares, and the mistakes that are found when definitions load, with names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import cast

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from opendataflow_dagster import (
    ALL,
    EQUAL,
    LedgerResource,
    ListedChunks,
    Policy,
    daily,
    dataset,
    external_dataset,
    fresh,
    holds,
    hourly,
    matches,
    monthly,
    not_null,
    ranges,
    row_count,
    script_dataset,
    sql_dataset,
    static,
    weekly,
    within,
)
from opendataflow_dagster.engine.dataset_graph import build_graph
from opendataflow_dagster.engine.declaration import Declaration
from opendataflow_dagster.engine.options import Options
from opendataflow_dagster.model.check import Check
from opendataflow_dagster.model.errors import InvalidDefinition, LedgerUnavailable
from opendataflow_dagster.model.partitions import Partitions, keys_until, previous_key
from opendataflow_dagster.orchestrator.definitions import build_definitions
from opendataflow_dagster.orchestrator.partitions import mapping_of, partitions_of
from tests.dagster_project import Project

YEAR = daily("2024-01-01", "2024-12-31")
MONTHS = monthly("2024-01-01")


@dataset(partitions=YEAR)
def raw() -> None: ...


@dataset(partitions=YEAR, domain="sales", owner="team:sales", checks=[not_null("id")])
def tidy(raw: DataFrame) -> DataFrame:
    """Without the zeros."""
    return raw.where("id > 0")


def test_a_declared_function_is_still_the_plain_function(spark: SparkSession) -> None:
    made = cast(DataFrame, tidy(spark.range(3)))

    assert [row.id for row in made.collect()] == [1, 2]


def test_inputs_come_from_parameters_and_the_rest_from_the_declaration() -> None:
    entry = build_graph([raw, tidy], "/lake").nodes[tidy.datasetid]

    assert entry.job is not None
    assert [(source.datasetid, source.mapping) for source in entry.job.inputs] == [("raw", EQUAL)]
    assert (entry.dataset.location, entry.dataset.domain, entry.dataset.owner) == ("/lake/tidy", "sales", "team:sales")
    assert entry.dataset.description == "Without the zeros."


def test_a_parameter_with_a_default_is_no_input_and_the_context_is_none() -> None:
    @dataset()
    def made(context: object, raw: object, share: float = 0.5) -> None: ...

    assert [needed.parameter for needed in made.inputs] == ["raw"]


def test_every_dataset_has_a_backfill_policy_of_its_own() -> None:
    """Datasets with equal policies would share a run, where a failed chunk holds back the others' good ones."""
    declared = [dataset(f"d{number}", chunks_per_run=1000 - number % 2)(lambda: None) for number in range(6)]

    policies = [node.chunks_per_run for node in build_graph(declared, "/lake").nodes.values()]

    assert len(set(policies)) == len(policies)


def circle() -> list[Declaration]:
    return [
        dataset("a", inputs={"x": "c"})(lambda x: x),
        dataset("b", inputs={"x": "a"})(lambda x: x),
        dataset("c", inputs={"x": "b"})(lambda x: x),
    ]


def with_schema(*checks: Check) -> Declaration:
    schema = StructType().add("id", "long").add("name", "string")
    return dataset("typed", schema=schema, checks=checks)(lambda: None)


def generator() -> object:
    yield


def said_wrong(option: str, value: object) -> list[Declaration]:
    return [dataset("made", **cast(Options, {option: value}))(lambda: None)]


MISTAKES: dict[str, tuple[Callable[[], list[Declaration]], str]] = {
    "unknown input": (
        lambda: [raw, dataset("made", inputs={"x": "rav"})(lambda x: x)],
        r"made reads rav \(parameter x\), which is not declared; did you mean raw\?",
    ),
    "unknown parameter in inputs": (
        lambda: [dataset("made", inputs={"y": "raw"})(lambda x: x)],
        "made: inputs names y, which it does not read; it reads x",
    ),
    "unknown parameter in mapping": (
        lambda: [dataset("made", mapping={"y": ALL})(lambda x: x)],
        "made: mapping names y, which it does not read",
    ),
    "no mapping": (
        lambda: [dataset("made", mapping={"x": "all"})(lambda x: x)],  # type: ignore[dict-item]
        "the mapping of x is 'all'; give EQUAL, ALL",
    ),
    "cycle": (circle, "depend on themselves: "),
    "two producers": (lambda: [raw, dataset("raw")(lambda: None)], "DataSet raw is declared twice"),
    "two datasets of one job": (
        lambda: [dataset("a", job="j")(lambda: None), dataset("b", job="j")(lambda: None)],
        "job j makes both a and b",
    ),
    "another kind of partitions": (
        lambda: [raw, dataset("made", partitions=MONTHS)(tidy.function or (lambda: None))],
        "made is monthly, its input raw is daily; declare the chunks it needs",
    ),
    "the equal chunk of another kind": (
        lambda: [raw, dataset("made", partitions=MONTHS, mapping={"raw": EQUAL})(lambda raw: raw)],
        "made is monthly, its input raw is daily; declare the chunks it needs",
    ),
    "within, swapped": (
        lambda: [raw, dataset("made", partitions=MONTHS, mapping={"raw": within(YEAR, MONTHS)})(lambda raw: raw)],
        "longer than the output's; pass the output's partitions first",
    ),
    "within, of other chunks of the input": (
        lambda: [
            external_dataset("hours", partitions=hourly("2024-01-01-00:00")),
            dataset("made", partitions=MONTHS, mapping={"hours": within(MONTHS, YEAR)})(lambda hours: hours),
        ],
        "hours gives hours the partitions daily from 2024-01-01 to 2024-12-31, but they are hourly from 2024-01-01-00",
    ),
    "within, of other chunks of the output": (
        lambda: [raw, dataset("made", partitions=YEAR, mapping={"raw": within(MONTHS, YEAR)})(lambda raw: raw)],
        "gives made the partitions monthly from 2024-01-01, but they are daily",
    ),
    "within, in another time zone": (
        lambda: [
            raw,
            dataset("made", partitions=MONTHS, mapping={"raw": within(MONTHS, YEAR)}, timezone="Asia/Tokyo")(
                lambda raw: raw
            ),
        ],
        "made is in time zone Asia/Tokyo, its input raw in UTC",
    ),
    "hours of a clock that changes": (
        lambda: [dataset("made", partitions=hourly("2024-01-01-00:00"), timezone="America/New_York")(lambda: None)],
        "made is hourly in America/New_York, which has daylight saving time; declare timezone='UTC'",
    ),
    "a misspelt option": (
        lambda: [dataset("made", partition=YEAR)(lambda: None)],  # type: ignore[call-arg]
        "made: there is no option partition; did you mean partitions",
    ),
    "a misspelt option of SQL": (
        lambda: [sql_dataset("select 1", "made", check=[])],  # type: ignore[call-arg]
        "made: there is no option check; did you mean checks",
    ),
    "a misspelt option of a script": (
        lambda: [script_dataset(sys.executable, "made", polici=Policy())],  # type: ignore[call-arg]
        "made: there is no option polici; did you mean policy",
    ),
    "an option that there is not": (
        lambda: [dataset("made", xyzzy=1)(lambda: None)],  # type: ignore[call-arg]
        "made: there is no option xyzzy; the options are inputs, mapping",
    ),
    **{
        f"{option} is {value!r}": (partial(said_wrong, option, value), f"made: {option} is .*; give {wanted}")
        for option, value, wanted in (
            ("inputs", ["raw"], "a dict"),
            ("mapping", ALL, "a dict"),
            ("partitions", "daily", r"daily\("),
            ("checks", not_null("a"), "a list of checks"),
            ("checks", ["a"], "a list of checks"),
            ("schema", "a int", "a StructType"),
            ("policy", {"max_attempts": 1}, "a Policy"),
            ("concurrency", "4", "a number"),
            ("root", 5, "a folder or URL"),
            ("chunks_per_run", True, "a number"),
            ("planned", "yes", "True or False"),
            ("job", 5, "a name"),
            ("timezone", None, "the name of a time zone"),
            ("skipped_input", "foo", "'waits' or 'passes'"),
            ("on_new_input", True, "'rebuild' or 'mark'"),
        )
    },
    "an input that is no DataSet": (
        lambda: [dataset("made", inputs={"x": 5})(lambda x: x)],  # type: ignore[dict-item]
        "made: the input x is 5; give the name of a DataSet",
    ),
    "partitions of an external DataSet": (
        lambda: [external_dataset("made", partitions="daily")],  # type: ignore[arg-type]
        r"made: partitions is 'daily'; give daily\(",
    ),
    "a path as the reader of an external DataSet": (
        lambda: [external_dataset("made", read="/landing")],  # type: ignore[arg-type]
        "made: read is '/landing'; give a function",
    ),
    "an external name that Dagster cannot have": (
        lambda: [external_dataset("a b")],
        "external DataSet 'a b' cannot be a Dagster asset",
    ),
    "a check of a column that there is not": (
        lambda: [with_schema(not_null("nome"))],
        r"check not_null\(nome\) needs column nome, .*\(columns: id, name\)",
    ),
    "a check of the wrong type": (
        lambda: [with_schema(matches("id", "^a"))],
        "needs a string column, but id is bigint",
    ),
    "a check of a column that the SQL does not return": (
        lambda: [raw, sql_dataset("select id as key, 1 as one from raw", "made", checks=[not_null("id")])],
        r"DataSet made: check not_null\(id\) needs column id, .*\(columns: key, one\)",
    ),
    "a check of a column that a star does not return": (
        lambda: [with_schema(), sql_dataset("select *, 1 as one from typed", "made", checks=[not_null("nome")])],
        r"check not_null\(nome\) needs column nome, .*\(columns: id, name, one\)",
    ),
    "a predicate about a column that there is not": (
        lambda: [
            with_schema(holds("positive", "Id > 0 and nome is not null and exists(split(name, ' '), x -> x > '')"))
        ],
        "check positive needs column nome, which does not exist",
    ),
    "a severity that there is not": (
        lambda: [dataset("made", checks=[row_count(1, severity="warning")])(lambda: None)],  # type: ignore[arg-type]
        "check row_count: severity is 'warning'; it must be error or warn",
    ),
    "freshness of no time": (
        lambda: [with_schema(fresh("name", timedelta(days=1)))],
        "needs a timestamp or date column, but name is string",
    ),
    "a check twice": (lambda: [with_schema(row_count(1), row_count(2))], "declares the check row_count twice"),
    "a generator": (lambda: [dataset("made")(generator)], "yields or awaits"),
    "any number of inputs": (lambda: [dataset("made")(lambda *frames: None)], "use one parameter per input"),
    "a name that Dagster cannot have": (lambda: [dataset("a b")(lambda: None)], "use letters, digits and _ only"),
    "without parentheses": (lambda: [dataset(lambda: None)], "write @dataset()"),  # type: ignore[arg-type,list-item]
    "no declaration": (lambda: [lambda: None], "is not a DataSet"),  # type: ignore[list-item]
    "sql on a path": (
        lambda: [sql_dataset("select * from parquet.`/tmp/x`", "made")],
        "is a path, a function or a table",
    ),
    "sql on a file's name": (lambda: [sql_dataset("select * from `/tmp/x`", "made")], "reads /tmp/x .* not declared"),
    "sql on an untracked table": (
        lambda: [raw, sql_dataset("select * from rav", "made")],
        "reads rav .*did you mean raw",
    ),
    "sql of another catalog": (lambda: [sql_dataset("select * from hive.raw", "made")], "is a path, a function or a"),
    "sql that is no query": (lambda: [sql_dataset("drop table raw", "made")], "is not a single query"),
    "sql that cannot be read": (lambda: [sql_dataset("select from from", "made")], "cannot be parsed"),
    "a script that there is not": (lambda: [script_dataset("nowhere.sh")], "there is no script nowhere.sh"),
    "a script that may not run": (lambda: [script_dataset(__file__)], "is not executable; run: chmod"),
    "sql file that there is not": (lambda: [sql_dataset("nowhere.sql")], "there is no SQL file nowhere.sql"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_when_definitions_load_and_names_the_thing(mistake: str) -> None:
    make, said = MISTAKES[mistake]

    with pytest.raises(InvalidDefinition, match=said):
        build_graph(make(), "/lake")


def test_a_sql_file_gives_its_name_and_its_tables_are_the_inputs(tmp_path: Path) -> None:
    (tmp_path / "summary.sql").write_text(
        "with few as (select * from raw) select * from few f join (select * from codes) using (id) where day = :dataid"
    )

    summary = sql_dataset(tmp_path / "summary.sql")

    assert summary.datasetid == "summary"
    assert sorted(needed.datasetid for needed in summary.inputs) == ["codes", "raw"]


@pytest.mark.parametrize(
    "partitions",
    [
        daily("2024-02-27", "2024-03-02"),
        hourly("2024-01-01-22:00", "2024-01-02-01:00"),
        weekly("2024-01-03", "2024-02-07"),
        monthly("2023-11-01", "2024-02-01"),
        static("north", "south", "10", "9"),
        ranges(0, 2500, 1000),
    ],
    ids=lambda partitions: str(partitions.to_json()["kind"]),
)
def test_dagster_has_exactly_the_dataids_of_the_dataset(partitions: Partitions) -> None:
    keys = partitions_of(dataset("d", partitions=partitions)(lambda: None)).get_partition_keys()

    assert list(keys) == list(keys_until(partitions, datetime.fromisoformat("2030-01-01")))
    assert all(partitions.has(dataid) for dataid in keys)
    assert [previous_key(partitions, dataid) for dataid in keys] == [None, *keys[:-1]]


def test_a_dataset_without_partitions_has_dynamic_ones() -> None:
    assert isinstance(partitions_of(external_dataset("landing")), dg.DynamicPartitionsDefinition)


def test_mappings_order_a_backfill_as_the_ledger_would() -> None:
    assert isinstance(mapping_of(EQUAL, YEAR, YEAR), dg.IdentityPartitionMapping)
    assert isinstance(mapping_of(EQUAL, None, None), dg.IdentityPartitionMapping)
    assert isinstance(mapping_of(ALL, YEAR, YEAR), dg.AllPartitionMapping)
    assert isinstance(mapping_of(within(MONTHS, YEAR), MONTHS, YEAR), dg.TimeWindowPartitionMapping)
    assert isinstance(mapping_of(ListedChunks(lambda dataid: [dataid]), YEAR, YEAR), dg.AllPartitionMapping)


def test_dagster_accepts_every_mapping_that_we_accept(project: Project) -> None:
    whatever = dataset("whatever")(lambda: None)
    defined = project.build(
        *(raw, whatever, dataset("months", partitions=MONTHS, mapping={"raw": within(MONTHS, YEAR)})(lambda raw: raw)),
        *(dataset("days", partitions=YEAR)(lambda whatever: whatever), dataset("any")(lambda raw: raw)),
        external_dataset("s3-landing.v1", partitions=YEAR),
        dataset("landed", partitions=YEAR, inputs={"x": "s3-landing.v1"})(lambda x: x),
    )

    dg.Definitions.validate_loadable(defined)


def test_a_code_location_that_cannot_reach_its_ledger_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")

    with pytest.raises(LedgerUnavailable, match=r"127\.0\.0\.1:1/nothing cannot be reached") as caught:
        build_definitions([raw], warehouse="/lake", ledger=LedgerResource(patience_seconds=0.5))

    assert "is not loaded" in caught.value.__notes__[0]
