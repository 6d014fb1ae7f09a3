"""The registry's rows as DataSets and Jobs, as code would declare them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..model.dataset import Dataset
from ..model.errors import InvalidDefinition
from ..model.ids import DataId, DatasetId, JobId
from ..model.job import ALL, EQUAL, POLICY, ChunkMapping, Input, Job, ListedChunks, Policy
from ..model.partitions import partitions_from_json
from .database import Row, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Connection:
    """Where an upstream client or a script finds a DataSet; its password is a secret of its own."""

    hostname: str | None = None
    database: str | None = None
    schemaname: str | None = None
    tablename: str | None = None
    username: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    dataset: Dataset
    connection: Connection


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


def mapping(kind: str) -> ChunkMapping:
    match kind:
        case "equal":
            return EQUAL
        case "all":
            return ALL
        case "listed":
            return ListedChunks(_not_known)
    raise InvalidDefinition(f"{kind!r} is no mapping; use equal, listed or all")


def _not_known(dataid: DataId) -> Iterable[str]:
    raise InvalidDefinition(f"which input chunks {dataid} needs is said in code; plan it from there")


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
