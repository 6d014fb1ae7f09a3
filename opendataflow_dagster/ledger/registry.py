"""The registry tables: DataSets, Jobs, their policies, and planned chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..model.ids import DataId, DatasetId, JobId, RunId
from ..model.job import Job
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Registered:
    """What the ledger knows now: the DataSets, and which Job reads and makes which."""

    datasets: frozenset[DatasetId]
    inputs: dict[JobId, set[DatasetId]]
    outputs: dict[JobId, set[DatasetId]]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobItem:
    """An IN or OUT DataSet of a Job with what is known of it, or one of the Job's variables (itemtype is its name)."""

    itemtype: str
    itemvalue: str | None
    datasetid: DatasetId | None
    hostname: str | None
    database: str | None
    schemaname: str | None
    tablename: str | None
    username: str | None
    encryptedpass: str | None = field(repr=False)
    location: str | None


def registered(transaction: Transaction) -> Registered:
    datasets: set[DatasetId] = set()
    inputs: dict[JobId, set[DatasetId]] = {}
    outputs: dict[JobId, set[DatasetId]] = {}
    for row in transaction.rows("registered"):
        match row["itemtype"]:
            case None:
                datasets.add(DatasetId(row["name"]))
            case "IN":
                inputs.setdefault(JobId(row["name"]), set()).add(DatasetId(row["datasetid"]))
            case _:
                outputs.setdefault(JobId(row["name"]), set()).add(DatasetId(row["datasetid"]))
    return Registered(datasets=frozenset(datasets), inputs=inputs, outputs=outputs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """How operators have limited a Job, and what that leaves."""

    concurrency: int | None
    running: int
    #: Since when, and why.
    paused: str | None
    #: How many more chunks may be claimed now; None: any number.
    free: int | None


def is_job(transaction: Transaction, jobid: JobId) -> bool:
    return bool(transaction.one("is_job", jobid=jobid)["found"])


def is_steered(transaction: Transaction, jobid: JobId) -> bool:
    """Has an operator limited this Job?"""
    return bool(transaction.one("is_job", jobid=jobid)["steered"])


def room(transaction: Transaction, jobid: JobId) -> Room:
    row = transaction.one("room", jobid=jobid)
    since, why = row["paused"], row["reason"]
    return Room(
        concurrency=row["concurrency"],
        running=row["running"],
        paused=f"{since:%Y-%m-%d %H:%M:%S}{f', {why}' if why else ''}" if since else None,
        free=row["free"],
    )


def job_items(transaction: Transaction, jobid: JobId) -> list[JobItem]:
    return [JobItem(**row) for row in transaction.rows("script_items", jobid=jobid)]


def plan_chunks(transaction: Transaction, job: Job, dataids: Sequence[DataId], run_id: RunId | None = None) -> int:
    """Announce chunks with the input chunks they need; how many are new. `run_id`: who shall make them."""
    listed = [
        (dataid, datasetid, input_dataid)
        for dataid in dataids
        for datasetid, input_dataids in job.input_chunks(dataid).items()
        # '' says that the chunk needs none of that DataSet.
        for input_dataid in (input_dataids or ("",))
    ]
    if listed:
        transaction.run(
            "list_inputs",
            jobid=job.jobid,
            planned=list(dataids),
            dataids=[one[0] for one in listed],
            datasetids=[one[1] for one in listed],
            input_dataids=[one[2] for one in listed],
        )
    return announce_chunks(transaction, job.jobid, dataids, run_id)


def announce_chunks(
    transaction: Transaction, jobid: JobId, dataids: Sequence[DataId], run_id: RunId | None = None
) -> int:
    """PENDING rows for the outputs of a Job; how many are new."""
    return transaction.run("plan_chunks", jobid=jobid, dataids=list(dataids), run_id=run_id)
