"""Errors for names that the ledger does not know, with the names that a person may have meant."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..model.errors import UnknownName
from ..model.ids import ChunkKey, DatasetId, JobId
from ..model.text import did_you_mean, listing
from .database import Transaction


def unknown_dataset(transaction: Transaction, datasetid: DatasetId) -> UnknownName:
    return UnknownName(_dataset(transaction, datasetid))


def unknown_job(transaction: Transaction, jobid: JobId) -> UnknownName:
    advice = did_you_mean(jobid, _names(transaction, "job_names"), "list the jobs with: odf job list")
    return UnknownName(f"job {jobid} is not registered; {advice}")


def unknown_chunks(transaction: Transaction, keys: Sequence[ChunkKey]) -> UnknownName:
    """At least one. What may have been meant is said of the first."""
    first, unknown = keys[0], f"there is no chunk {listing(keys)}"
    if not transaction.value("is_dataset", datasetid=first.datasetid):
        return UnknownName(f"{unknown}: {_dataset(transaction, first.datasetid)}")
    around = _names(transaction, "dataids_around", datasetid=first.datasetid, dataid=first.dataid)
    listed = f"list the chunks with: {shlex.join(['odf', 'chunks', first.datasetid, '--list'])}"
    # Dates are all alike: only a slip of the finger is worth a question.
    return UnknownName(f"{unknown}; {did_you_mean(first.dataid, around, listed, likeness=0.85)}")


def _dataset(transaction: Transaction, datasetid: DatasetId) -> str:
    listed = "list the DataSets with: odf dataset list"
    advice = did_you_mean(datasetid, _names(transaction, "dataset_names"), listed)
    return f"DataSet {datasetid} is not registered; {advice}"


def _names(transaction: Transaction, statement: str, **values: str) -> list[str]:
    return [row["name"] for row in transaction.rows(statement, **values)]
