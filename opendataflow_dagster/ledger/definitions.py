"""The registry's rows as DataSets and Jobs, as code would declare them."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.dataset import Dataset
from ..model.definition import Connection, Definition, mapping
from ..model.ids import DatasetId, JobId
from ..model.job import POLICY, Input, Job, Policy
from ..model.partitions import partitions_from_json
from .database import Row, Transaction


def datasets(transaction: Transaction, datasetids: Sequence[str] | None = None) -> list[Definition]:
    wanted = list(datasetids) if datasetids is not None else None
    return [_dataset(row) for row in transaction.rows("dataset_definitions", datasetids=wanted)]


def jobs(transaction: Transaction, jobids: Sequence[str] | None = None) -> list[Job]:
    """Jobs that only read, as an upstream client may have, are no Jobs that this system could run."""
    by_job: dict[str, list[Row]] = {}
    wanted = list(jobids) if jobids is not None else None
    for row in transaction.rows("job_definitions", jobids=wanted):
        by_job.setdefault(row["jobid"], []).append(row)
    return [_job(items) for items in by_job.values() if any(one["itemtype"] == "OUT" for one in items)]


def put_connections(transaction: Transaction, wanted: Sequence[Definition]) -> int:
    """How many changed."""
    values = {name: [getattr(one.connection, name) for one in wanted] for name in Connection.__slots__}
    return transaction.run("put_connections", datasetids=[one.dataset.datasetid for one in wanted], **values)


def _dataset(row: Row) -> Definition:
    plain = ("schema_hash", "foreign_ready", "skipped_input", "repeats", "timezone", "owner", "domain", "description")
    return Definition(
        dataset=Dataset(
            datasetid=DatasetId(row["datasetid"]),
            location=row["location"],
            partitions=partitions_from_json(row["partitions"]) if row["partitions"] is not None else None,
            **{name: row[name] for name in plain},
        ),
        connection=Connection(**{name: row[name] for name in Connection.__slots__}),
    )


def _job(items: list[Row]) -> Job:
    first = items[0]
    return Job(
        jobid=JobId(first["jobid"]),
        inputs=tuple(
            Input(datasetid=DatasetId(one["datasetid"]), mapping=mapping(one["mapping"]))
            for one in items
            if one["itemtype"] == "IN"
        ),
        outputs=tuple(DatasetId(one["datasetid"]) for one in items if one["itemtype"] == "OUT"),
        environment={one["itemtype"]: one["itemvalue"] for one in items if one["itemtype"] not in ("IN", "OUT")},
        policy=Policy(**{name: first[name] for name in POLICY}) if first["lease"] is not None else Policy(),
    )
