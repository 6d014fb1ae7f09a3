"""Writes definitions into the registry: only what is new or changed, all of it in a few statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from psycopg.types.json import Jsonb

from ..model.dataset import Dataset
from ..model.job import POLICY, Job
from .database import Row, Transaction

#: jobid, itemtype, datasetid, itemvalue, mapping
_Item: TypeAlias = tuple[str, str, str | None, str | None, str]


def put(transaction: Transaction, datasets: Sequence[Dataset], jobs: Sequence[Job]) -> int:
    """The number of new or changed definitions. Every Dagster process registers its code when it loads, mostly
    unchanged: then nothing is written, and no claim has to wait."""
    if not _changed_datasets(transaction, datasets) and not _changed_jobs(transaction, jobs):
        return 0
    transaction.rows("lock_registry")
    new_datasets = _changed_datasets(transaction, datasets)
    if new_datasets:
        columns = [dataset.columns() for dataset in new_datasets]
        parameters = {name: [row[name] for row in columns] for name in columns[0]}
        parameters["partitions"] = [None if value is None else Jsonb(value) for value in parameters["partitions"]]
        transaction.run("put_datasets", **parameters)
    new_jobs = _changed_jobs(transaction, jobs)
    if new_jobs:
        _put_jobs(transaction, new_jobs)
    return len(new_datasets) + len(new_jobs)


def _changed_datasets(transaction: Transaction, datasets: Sequence[Dataset]) -> list[Dataset]:
    wanted = [dataset.datasetid for dataset in datasets]
    found = {row["datasetid"]: row for row in transaction.rows("dataset_definitions", datasetids=wanted)}
    return [dataset for dataset in datasets if (row := found.get(dataset.datasetid)) is None or _differs(dataset, row)]


def _differs(dataset: Dataset, row: Row) -> bool:
    columns = dataset.columns()
    if dataset.code_version is None:
        del columns["code_version"]  # what is known of the code stays
    return any(row[name] != value for name, value in columns.items())


def _changed_jobs(transaction: Transaction, jobs: Sequence[Job]) -> list[Job]:
    items, policies = _registered_jobs(transaction, jobs)
    return [job for job in jobs if _items(job) != items.get(job.jobid) or _policy(job) != policies.get(job.jobid)]


def _registered_jobs(
    transaction: Transaction, jobs: Sequence[Job]
) -> tuple[dict[str, set[_Item]], dict[str, dict[str, object]]]:
    """The registered items and policies of these Jobs."""
    items: dict[str, set[_Item]] = {}
    policies: dict[str, dict[str, object]] = {}
    for row in transaction.rows("job_definitions", jobids=[job.jobid for job in jobs]):
        item = (row["jobid"], row["itemtype"], row["datasetid"], row["itemvalue"], row["mapping"])
        items.setdefault(row["jobid"], set()).add(item)
        if row["lease"] is not None:
            policies[row["jobid"]] = {"jobid": row["jobid"], **{name: row[name] for name in POLICY}}
    return items, policies


def _put_jobs(transaction: Transaction, jobs: Sequence[Job]) -> None:
    """Deletes first: an output may move from one Job to another."""
    items, policies = _registered_jobs(transaction, jobs)
    have = set().union(*items.values())
    want = set().union(*(_items(job) for job in jobs))
    if gone := sorted(have - want, key=repr):
        transaction.run(
            "drop_job_items",
            jobids=[item[0] for item in gone],
            itemtypes=[item[1] for item in gone],
            datasetids=[item[2] for item in gone],
        )
    if come := sorted(want - have, key=repr):
        transaction.run(
            "add_job_items",
            jobids=[item[0] for item in come],
            itemtypes=[item[1] for item in come],
            datasetids=[item[2] for item in come],
            itemvalues=[item[3] for item in come],
            mappings=[item[4] for item in come],
        )
    if changed := [_policy(job) for job in jobs if _policy(job) != policies.get(job.jobid)]:
        transaction.run("put_policy", **{name: [policy[name] for policy in changed] for name in changed[0]})


def _items(job: Job) -> set[_Item]:
    return {
        *((job.jobid, "IN", source.datasetid, None, source.mapping.kind) for source in job.inputs),
        *((job.jobid, "OUT", output, None, "equal") for output in job.outputs),
        *((job.jobid, name, None, value, "equal") for name, value in job.environment.items()),
    }


def _policy(job: Job) -> dict[str, object]:
    return {"jobid": job.jobid, **{name: getattr(job.policy, name) for name in POLICY}}
