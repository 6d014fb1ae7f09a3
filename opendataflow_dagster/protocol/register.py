"""register: mirror the DataSets and Jobs that the code declares in the ledger; plan: announce their chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ledger import registration, registry
from ..ledger.database import Ledger, Transaction
from ..ledger.names import unknown_job
from ..ledger.retry import gives_way
from ..ledger.settling import settle
from ..model.dataset import Dataset
from ..model.errors import InvalidDefinition, UnknownName
from ..model.ids import DatasetId, data_id
from ..model.job import Job
from ..model.job_graph import refuse_cycles, refuse_two_producers
from ..model.text import did_you_mean


@gives_way
def register(ledger: Ledger, datasets: Sequence[Dataset] = (), jobs: Sequence[Job] = ()) -> int:
    """All or nothing. Returns the number of new or changed definitions."""
    with ledger.transaction() as transaction:
        changed = register_in(transaction, datasets, jobs)
    if changed:
        settle(ledger)
    return changed


def register_in(transaction: Transaction, datasets: Sequence[Dataset], jobs: Sequence[Job]) -> int:
    """As part of a larger transaction."""
    _refuse_duplicates("DataSet", [dataset.datasetid for dataset in datasets])
    _refuse_duplicates("job", [job.jobid for job in jobs])
    known = registry.registered(transaction)
    inputs = {**known.inputs, **{job.jobid: {source.datasetid for source in job.inputs} for job in jobs}}
    outputs = {**known.outputs, **{job.jobid: set(job.outputs) for job in jobs}}
    # A Job that reads `today` registers it, in the ledger.
    _refuse_unknown(jobs, known.datasets | {dataset.datasetid for dataset in datasets} | {DatasetId("today")})
    refuse_two_producers(outputs)
    refuse_cycles(inputs, outputs)
    return registration.put(transaction, datasets, jobs)


@gives_way
def plan(ledger: Ledger, job: Job, dataids: Iterable[str]) -> int:
    """Make chunks PENDING, with the input chunks that each needs. Returns the number of new ones."""
    chunks = tuple(dict.fromkeys(data_id(dataid) for dataid in dataids))
    with ledger.transaction() as transaction:
        if not registry.is_job(transaction, job.jobid):
            raise unknown_job(transaction, job.jobid)
        return registry.plan_chunks(transaction, job, chunks)


def _refuse_duplicates(what: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidDefinition(f"{what} {', '.join(twice)} is declared twice; rename one")


def _refuse_unknown(jobs: Iterable[Job], datasets: frozenset[DatasetId]) -> None:
    for job in jobs:
        used = {*(source.datasetid for source in job.inputs), *job.outputs}
        if unknown := sorted(used - datasets):
            advice = did_you_mean(unknown[0], datasets, "register the DataSet")
            raise UnknownName(f"job {job.jobid} uses {', '.join(unknown)}, which is not registered; {advice}")
