"""Errors for names that the ledger does not know, with the names that a person may have meant."""

from __future__ import annotations

import shlex

from ..model.errors import UnknownName
from ..model.ids import ChunkKey, DatasetId, JobId
from ..model.text import did_you_mean
from .database import Transaction


def unknown_dataset(transaction: Transaction, datasetid: DatasetId) -> UnknownName:
    advice = did_you_mean(datasetid, _names(transaction, "dataset_names"), "list the DataSets with: odf dataset list")
    return UnknownName(f"DataSet {datasetid} is not registered; {advice}")


def unknown_job(transaction: Transaction, jobid: JobId) -> UnknownName:
    advice = did_you_mean(jobid, _names(transaction, "job_names"), "list the jobs with: odf job list")
    return UnknownName(f"job {jobid} is not registered; {advice}")


def unknown_chunk(transaction: Transaction, key: ChunkKey) -> UnknownName:
    if not transaction.value("is_dataset", datasetid=key.datasetid):
        return unknown_dataset(transaction, key.datasetid)
    around = _names(transaction, "dataids_around", datasetid=key.datasetid, dataid=key.dataid)
    listed = f"list the chunks with: {shlex.join(['odf', 'chunks', key.datasetid, '--list'])}"
    # Dates are all alike: only a slip of the finger is worth a question.
    advice = did_you_mean(key.dataid, around, listed, likeness=0.85)
    return UnknownName(f"there is no chunk {key}; {advice}")


def _names(transaction: Transaction, statement: str, **values: str) -> list[str]:
    return [row["name"] for row in transaction.rows(statement, **values)]
