"""Writes definitions into the registry: only what is new or changed, all of it in a few statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from psycopg.types.json import Jsonb

from ..model.dataset import Dataset
from ..model.job import POLICY, Job
from .database import Transaction

#: jobid, itemtype, datasetid, itemvalue, mapping
_Item: TypeAlias = tuple[str, str, str | None, str | None, str]


def put(transaction: Transaction, datasets: Sequence[Dataset], jobs: Sequence[Job]) -> int:
    """How many were new or changed. Every process of Dagster registers its code when it loads, mostly the same: then
    nothing is written, and nobody who claims has to wait."""
    if not _changed_datasets(transaction, datasets) and not _changed_jobs(transaction, jobs):
        return 0
    transaction.rows("lock_registry")
    new_datasets = _changed_datasets(transaction, datasets)
    if new_datasets:
        columns = [_columns(one) for one in new_datasets]
        parameters = {name: [one[name] for one in columns] for name in columns[0]}
        parameters["partitions"] = [None if one is None else Jsonb(one) for one in parameters["partitions"]]
        transaction.run("put_datasets", **parameters)
    new_jobs = _changed_jobs(transaction, jobs)
    if new_jobs:
        _put_jobs(transaction, new_jobs)
    return len(new_datasets) + len(new_jobs)


def _changed_datasets(transaction: Transaction, datasets: Sequence[Dataset]) -> list[Dataset]:
    wanted = [one.datasetid for one in datasets]
    found = {row["datasetid"]: row for row in transaction.rows("dataset_definitions", datasetids=wanted)}
    return [
        one
        for one in datasets
        if (row := found.get(one.datasetid)) is None or {name: row[name] for name in _columns(one)} != _columns(one)
    ]


def _columns(one: Dataset) -> dict[str, object]:
    return {
        "datasetid": one.datasetid,
        "location": one.location,
        "partitions": one.partitions.to_json() if one.partitions else None,
        "schema_hash": one.schema_hash,
        "foreign_ready": one.foreign_ready_or_default,
        "skipped_input": one.skipped_input,
        "repeats": one.repeats,
        "timezone": one.timezone,
        "owner": one.owner,
        "domain": one.domain,
        "description": one.description,
    }


def _changed_jobs(transaction: Transaction, jobs: Sequence[Job]) -> list[Job]:
    items, policies = _registered_jobs(transaction, jobs)
    return [one for one in jobs if _items(one) != items.get(one.jobid) or _policy(one) != policies.get(one.jobid)]


def _registered_jobs(
    transaction: Transaction, jobs: Sequence[Job]
) -> tuple[dict[str, set[_Item]], dict[str, dict[str, object]]]:
    """The items of these Jobs as the ledger has them, and their policies."""
    items: dict[str, set[_Item]] = {}
    policies: dict[str, dict[str, object]] = {}
    for row in transaction.rows("job_definitions", jobids=[one.jobid for one in jobs]):
        item = (row["jobid"], row["itemtype"], row["datasetid"], row["itemvalue"], row["mapping"])
        items.setdefault(row["jobid"], set()).add(item)
        if row["lease"] is not None:
            policies[row["jobid"]] = {"jobid": row["jobid"], **{name: row[name] for name in POLICY}}
    return items, policies


def _put_jobs(transaction: Transaction, jobs: Sequence[Job]) -> None:
    """What goes, goes first: an output may move from one Job to another."""
    items, policies = _registered_jobs(transaction, jobs)
    have = set().union(*items.values())
    want = set().union(*(_items(one) for one in jobs))
    if gone := sorted(have - want, key=repr):
        transaction.run(
            "drop_job_items",
            jobids=[one[0] for one in gone],
            itemtypes=[one[1] for one in gone],
            datasetids=[one[2] for one in gone],
        )
    if come := sorted(want - have, key=repr):
        transaction.run(
            "add_job_items",
            jobids=[one[0] for one in come],
            itemtypes=[one[1] for one in come],
            datasetids=[one[2] for one in come],
            itemvalues=[one[3] for one in come],
            mappings=[one[4] for one in come],
        )
    if changed := [_policy(one) for one in jobs if _policy(one) != policies.get(one.jobid)]:
        transaction.run("put_policy", **{name: [one[name] for one in changed] for name in changed[0]})


def _items(job: Job) -> set[_Item]:
    return {
        *((job.jobid, "IN", one.datasetid, None, one.mapping.kind) for one in job.inputs),
        *((job.jobid, "OUT", one, None, "equal") for one in job.outputs),
        *((job.jobid, name, None, value, "equal") for name, value in job.environment.items()),
    }


def _policy(job: Job) -> dict[str, object]:
    return {"jobid": job.jobid, **{name: getattr(job.policy, name) for name in POLICY}}
