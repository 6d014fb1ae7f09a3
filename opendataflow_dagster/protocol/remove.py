"""remove: take a Job or a DataSet out of the registry. History, versions and files stay."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ..ledger import lookup, registry, removal
from ..ledger.database import Ledger
from ..ledger.names import unknown_dataset
from ..ledger.retry import gives_way
from ..ledger.settling import settle
from ..model.errors import InvalidInput
from ..model.ids import DatasetId, JobId, dataset_id, job_id
from ..model.text import counted, listing
from .gate import require_job


@dataclass(frozen=True, kw_only=True, slots=True)
class RemovedJob:
    jobid: JobId
    #: The chunks that its DataSets keep, by status.
    chunks: Mapping[DatasetId, Mapping[str, int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RemovedDataset:
    datasetid: DatasetId
    #: The chunks that were deleted with it, by status.
    chunks: Mapping[str, int]


@gives_way
def remove_job(ledger: Ledger, jobid: str, *, by: str, reason: str = "") -> RemovedJob:
    """With its policy and limits. What it has made stays, and what waits is left to the next Job that makes the
    DataSet. A Job that is making a chunk is refused."""
    job = job_id(jobid)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        removal.hold_registry(transaction)
        require_job(transaction, job)
        if running := removal.running_chunks(transaction, job):
            them = "it" if len(running) == 1 else "them"
            cancel = shlex.join(["odf", "cancel", running[0].datasetid, running[0].dataid])
            raise InvalidInput(
                f"job {job} is making {counted(len(running), 'chunk')} ({listing(running)}); wait for {them}, "
                f"or cancel {them} with: {cancel}"
            )
        kept = removal.chunk_counts(transaction, lookup.outputs_of(transaction, job))
        removal.remove_job(transaction, job)
    settle(ledger)
    return RemovedJob(jobid=job, chunks=kept)


@gives_way
def remove_dataset(
    ledger: Ledger, datasetid: str, *, by: str, reason: str = "", with_chunks: bool = False
) -> RemovedDataset:
    """A DataSet that a Job names is refused, and one with chunks, unless they are to be deleted, too."""
    dataset = dataset_id(datasetid)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        removal.hold_registry(transaction)
        if dataset not in registry.registered(transaction).datasets:
            raise unknown_dataset(transaction, dataset)
        if users := removal.users_of(transaction, dataset):
            names = [f"{jobid} ({itemtype})" for jobid, itemtype in users]
            raise InvalidInput(
                f"DataSet {dataset} is used by job {listing(names)}; remove it from the job with odf job set, "
                f"or remove the job with: {shlex.join(['odf', 'job', 'remove', users[0][0]])}"
            )
        chunks = removal.chunk_counts(transaction, [dataset]).get(dataset, {})
        if chunks and not with_chunks:
            raise InvalidInput(
                f"DataSet {dataset} has {counted(sum(chunks.values()), 'chunk')} ({by_status(chunks)}); "
                f"delete them too with --chunks; their history and files stay"
            )
        removal.remove_dataset(transaction, dataset)
    return RemovedDataset(datasetid=dataset, chunks=chunks)


def by_status(chunks: Mapping[str, int]) -> str:
    """`1 PENDING, 29 READY`."""
    return ", ".join(f"{count:,} {status}" for status, count in chunks.items())
