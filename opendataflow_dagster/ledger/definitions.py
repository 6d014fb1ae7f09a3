"""Reads the registry's rows as DataSets and Jobs, as code would declare them."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.dataset import Dataset
from ..model.definition import Definition, Registry, TableAddress, mapping
from ..model.ids import DatasetId, JobId
from ..model.job import POLICY, Input, Job, Policy
from ..model.partitions import partitions_from_json
from .database import Row, Transaction

_PLAIN = (
    "schema_hash",
    "foreign_ready",
    "skipped_input",
    "on_new_input",
    "repeats",
    "timezone",
    "owner",
    "domain",
    "description",
    "code_version",
    "expected_by",
    "fresh_within",
)


def read_registry(
    transaction: Transaction, datasetids: Sequence[str] | None = None, jobids: Sequence[str] | None = None
) -> Registry:
    """All DataSets and Jobs, or those named. Jobs without outputs, as upstream clients register, are left out."""
    by_job: dict[str, list[Row]] = {}
    for row in transaction.rows("job_definitions", jobids=list(jobids) if jobids is not None else None):
        by_job.setdefault(row["jobid"], []).append(row)
    datasets = transaction.rows("dataset_definitions", datasetids=list(datasetids) if datasetids is not None else None)
    return Registry(
        datasets=tuple(_dataset(row) for row in datasets),
        jobs=tuple(_job(items) for items in by_job.values() if any(item["itemtype"] == "OUT" for item in items)),
    )


def current_codes(transaction: Transaction, datasetids: Sequence[DatasetId]) -> dict[DatasetId, str | None]:
    """Of those that are registered."""
    found = transaction.rows("dataset_definitions", datasetids=list(datasetids))
    return {DatasetId(row["datasetid"]): row["code_version"] for row in found}


def overlapping_roots(transaction: Transaction) -> list[tuple[DatasetId, DatasetId, str]]:
    """Each with the other DataSet, and a sentence that names both."""
    return [
        (DatasetId(row["datasetid"]), DatasetId(row["other_datasetid"]), row["problem"])
        for row in transaction.rows("overlapping_roots")
    ]


def put_connections(transaction: Transaction, definitions: Sequence[Definition]) -> int:
    """How many changed."""
    columns = {
        name: [getattr(definition.connection, name) for definition in definitions] for name in TableAddress.__slots__
    }
    datasetids = [definition.dataset.datasetid for definition in definitions]
    return transaction.run("put_connections", datasetids=datasetids, **columns)


def _dataset(row: Row) -> Definition:
    return Definition(
        dataset=Dataset(
            datasetid=DatasetId(row["datasetid"]),
            location=row["location"],
            partitions=partitions_from_json(row["partitions"]) if row["partitions"] is not None else None,
            **{name: row[name] for name in _PLAIN},
        ),
        connection=TableAddress(**{name: row[name] for name in TableAddress.__slots__}),
    )


def _job(items: list[Row]) -> Job:
    first = items[0]
    return Job(
        jobid=JobId(first["jobid"]),
        inputs=tuple(
            Input(datasetid=DatasetId(item["datasetid"]), mapping=mapping(item["mapping"]))
            for item in items
            if item["itemtype"] == "IN"
        ),
        outputs=tuple(DatasetId(item["datasetid"]) for item in items if item["itemtype"] == "OUT"),
        environment={item["itemtype"]: item["itemvalue"] for item in items if item["itemtype"] not in ("IN", "OUT")},
        policy=Policy(**{name: first[name] for name in POLICY}) if first["lease"] is not None else Policy(),
    )
