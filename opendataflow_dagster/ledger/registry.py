"""The registry tables: DataSets, Jobs, their policies, and planned chunks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ..model.ids import DataId, DatasetId, JobId, RunId
from ..model.job import Job
from ..model.manifest import Manifest
from . import rows
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Registered:
    """The registered DataSets, and the inputs and outputs of each Job."""

    datasets: frozenset[DatasetId]
    inputs: dict[JobId, set[DatasetId]]
    outputs: dict[JobId, set[DatasetId]]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobItem:
    """An IN or OUT DataSet of a Job with its connection, or one of the Job's variables (itemtype is its name)."""

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
    """The operators' limits of a Job, and how many more chunks it may run."""

    concurrency: int | None
    running: int
    #: Since when, and why.
    paused: str | None
    #: None: no limit.
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


def register_script(transaction: Transaction, jobid: JobId, code_version: str) -> None:
    """The code that makes the outputs of this Job, unless their DataSets declare it."""
    transaction.rows("register_script", jobid=jobid, code_version=code_version)


def job_items(transaction: Transaction, jobid: JobId) -> list[JobItem]:
    return [JobItem(**row) for row in transaction.rows("script_items", jobid=jobid)]


def request(
    transaction: Transaction,
    job: Job,
    dataids: Sequence[DataId],
    *,
    by: str,
    requested: datetime | None,
    run_id: RunId | None,
    reason: str,
) -> tuple[tuple[DataId, ...], dict[DataId, Manifest | None]]:
    """The resubmitted chunks, and those that are READY with their version."""
    answer = transaction.value(
        "request",
        jobid=job.jobid,
        dataids=list(dataids),
        requested=requested,
        run_id=run_id,
        reason=reason,
        actor=by,
        **_listed(job, dataids),
    )
    said = json.loads(answer)
    ready = {
        chunk["dataid"]: rows.manifest(chunk["manifest"]) if chunk["manifest"] else None for chunk in said["ready"]
    }
    return tuple(said["resubmitted"]), ready


def plan_chunks(transaction: Transaction, job: Job, dataids: Sequence[DataId], run_id: RunId | None = None) -> int:
    """PENDING rows for the outputs of a Job, with the input chunks that each chunk needs; the number of new rows."""
    planned: int = transaction.value(
        "plan", jobid=job.jobid, dataids=list(dataids), run_id=run_id, **_listed(job, dataids)
    )
    return planned


def announce_chunks(transaction: Transaction, jobid: JobId, dataids: Sequence[DataId]) -> int:
    """The same for a Job of which only the name is known: its inputs stay as they are listed."""
    planned: int = transaction.value("plan", jobid=jobid, dataids=list(dataids), run_id=None, **_NOTHING_LISTED)
    return planned


_NOTHING_LISTED: Final[dict[str, list[str]]] = {
    "listed_dataids": [],
    "listed_datasetids": [],
    "listed_input_dataids": [],
}


def _listed(job: Job, dataids: Sequence[DataId]) -> dict[str, list[str]]:
    """The input chunks of each chunk, as far as a mapping lists them. '': it needs no chunk of that DataSet."""
    listed = [
        (dataid, datasetid, input_dataid)
        for dataid in dataids
        for datasetid, input_dataids in job.input_chunks(dataid).items()
        for input_dataid in (input_dataids or ("",))
    ]
    columns = zip(*listed, strict=True) if listed else ((), (), ())
    return dict(zip(_NOTHING_LISTED, map(list, columns), strict=True))
