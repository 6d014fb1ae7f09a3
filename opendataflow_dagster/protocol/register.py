"""register: the ledger mirrors the DataSets and Jobs that the code declares, and the chunks it plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from ..ledger import registration, registry
from ..ledger.database import Ledger, Transaction
from ..model.dataset import Dataset
from ..model.errors import InvalidDefinition, UnknownName
from ..model.ids import DatasetId, JobId, data_id
from ..model.job import Job


def register(ledger: Ledger, datasets: Sequence[Dataset] = (), jobs: Sequence[Job] = ()) -> int:
    """All of it or nothing; how many definitions were new or changed."""
    with ledger.transaction() as transaction:
        return register_in(transaction, datasets, jobs)


def register_in(transaction: Transaction, datasets: Sequence[Dataset], jobs: Sequence[Job]) -> int:
    """As part of a larger act."""
    _refuse_duplicates("DataSet", [one.datasetid for one in datasets])
    _refuse_duplicates("job", [one.jobid for one in jobs])
    known = registry.registered(transaction)
    inputs = {**known.inputs, **{job.jobid: {one.datasetid for one in job.inputs} for job in jobs}}
    outputs = {**known.outputs, **{job.jobid: set(job.outputs) for job in jobs}}
    _refuse_unknown(jobs, known.datasets | {one.datasetid for one in datasets})
    _refuse_two_producers(outputs)
    _refuse_cycles(inputs, outputs)
    return registration.put(transaction, datasets, jobs)


def plan(ledger: Ledger, job: Job, dataids: Iterable[str]) -> int:
    """Announce chunks as PENDING, with the input chunks that each needs; how many are new."""
    chunks = tuple(dict.fromkeys(data_id(one) for one in dataids))
    with ledger.transaction() as transaction:
        if not registry.is_job(transaction, job.jobid):
            raise UnknownName(f"job {job.jobid} is not registered; register it before you plan its chunks")
        return registry.plan_chunks(transaction, job, chunks)


def _refuse_duplicates(what: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidDefinition(f"{what} {', '.join(twice)} is declared twice; rename one")


def _refuse_unknown(jobs: Iterable[Job], datasets: frozenset[DatasetId]) -> None:
    for job in jobs:
        used = {*(one.datasetid for one in job.inputs), *job.outputs}
        if unknown := sorted(used - datasets):
            raise UnknownName(
                f"job {job.jobid} uses {', '.join(unknown)}, which is not registered; register the DataSet"
            )


def _refuse_two_producers(outputs: dict[JobId, set[DatasetId]]) -> None:
    producer: dict[DatasetId, JobId] = {}
    for jobid, datasetids in sorted(outputs.items()):
        for datasetid in sorted(datasetids):
            if (other := producer.setdefault(datasetid, jobid)) != jobid:
                raise InvalidDefinition(
                    f"DataSet {datasetid} has two producers, {other} and {jobid}; let one of them make another DataSet"
                )


def _refuse_cycles(inputs: dict[JobId, set[DatasetId]], outputs: dict[JobId, set[DatasetId]]) -> None:
    made_from: dict[DatasetId, set[DatasetId]] = {}
    for jobid, datasetids in outputs.items():
        for datasetid in datasetids:
            made_from.setdefault(datasetid, set()).update(inputs.get(jobid, set()))
    try:
        TopologicalSorter(made_from).prepare()
    except CycleError as error:
        circle = " <- ".join(error.args[1])
        raise InvalidDefinition(
            f"DataSets are made from themselves: {circle}; take one input out of the circle"
        ) from None
