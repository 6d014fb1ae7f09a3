"""selection: which chunks a person means by names, ranges in natural order, a status, or a time window."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..ledger import lookup
from ..ledger.chunks import Chunk as Chunk
from ..ledger.chunks import find
from ..ledger.database import Ledger, Transaction
from ..ledger.names import unknown_chunks, unknown_dataset
from ..ledger.retry import gives_way
from ..model.errors import InvalidInput, UnknownName
from ..model.ids import ChunkKey, DataId, DatasetId, data_id, dataset_id, job_id
from ..model.ranges import DataIdRange, parse_range
from ..model.status import Status
from ..model.text import did_you_mean
from ..protocol.gate import require_job

_ALL = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Chunks of a DataSet, or of all outputs of a Job."""

    datasetid: str | None = None
    jobid: str | None = None
    #: Dataids and ranges `A..B`, `A..`, `..B`; empty: all chunks.
    words: Sequence[str] = ()
    statuses: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    #: Only READY chunks made by code other than their DataSet's.
    other_code: bool = False
    #: Only stale chunks.
    stale: bool = False

    @property
    def filters(self) -> bool:
        return bool(self.statuses or self.since or self.until or self.other_code or self.stale)


@gives_way
def select_chunks(ledger: Ledger, selection: Selection, *, count: int = _ALL) -> list[Chunk]:
    """In natural order. A name must exist; a range may be empty."""
    with ledger.transaction() as transaction:
        datasets = _datasets(transaction, selection)
        names, ranges = names_and_ranges(transaction, datasets, selection.words)
        chunks = _matching(transaction, datasets, names, ranges, selection, count)
    refuse_unknown_statuses(selection.statuses, {chunk.status for chunk in chunks})
    if not selection.filters and count == _ALL and (missing := set(names) - {chunk.dataid for chunk in chunks}):
        with ledger.statement() as statement:
            raise unknown_chunks(
                statement, [ChunkKey(datasetid=datasets[0], dataid=dataid) for dataid in sorted(missing)]
            )
    return chunks


@gives_way
def select_keys(ledger: Ledger, selection: Selection) -> list[ChunkKey]:
    """As `select_chunks`, for a verb: a name may lack a chunk, since the verb decides. An empty result is an error."""
    with ledger.transaction() as transaction:
        datasets = _datasets(transaction, selection)
        names, ranges = names_and_ranges(transaction, datasets, selection.words)
        keys = [
            ChunkKey(datasetid=datasetid, dataid=name)
            for datasetid in datasets
            for name in names
            if not selection.filters
        ]
        if ranges or selection.filters or not selection.words:
            filtered = names if selection.filters else []
            chunks = _matching(transaction, datasets, filtered, ranges, selection, _ALL)
            refuse_unknown_statuses(selection.statuses, {chunk.status for chunk in chunks})
            keys += [ChunkKey(datasetid=chunk.datasetid, dataid=chunk.dataid) for chunk in chunks]
    if not keys:
        raise InvalidInput(
            f"{' and '.join(datasets)}: no chunk matches {' '.join(selection.words) or 'the selection'}; "
            f"list the chunks with: odf chunks {datasets[0]} --list"
        )
    return list(dict.fromkeys(keys))


@gives_way
def select_failed(
    ledger: Ledger,
    *,
    datasetid: str | None = None,
    jobid: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Chunk]:
    """The FAILED chunks of everything, of a DataSet or of a Job."""
    with ledger.transaction() as transaction:
        everywhere = datasetid is None and jobid is None
        datasets = None if everywhere else _datasets(transaction, Selection(datasetid=datasetid, jobid=jobid))
        return lookup.failed_chunks(transaction, datasets, since=since, until=until)


def failed_keys(chunks: Sequence[Chunk]) -> tuple[list[ChunkKey], datetime | None]:
    """With the time of the last failure: a chunk that became READY after it needs no resubmit."""
    keys = [ChunkKey(datasetid=chunk.datasetid, dataid=chunk.dataid) for chunk in chunks]
    return keys, max((chunk.modified for chunk in chunks), default=None)


def require_dataset(transaction: Transaction, datasetid: DatasetId) -> None:
    if not lookup.is_dataset(transaction, datasetid):
        raise unknown_dataset(transaction, datasetid)


def refuse_unknown_statuses(words: Sequence[str] | None, found: Collection[str | None]) -> None:
    """A foreign client may use words of its own: then a chunk has them."""
    for word in words or ():
        if word not in found and word not in (*Status, "NULL"):
            advice = did_you_mean(word, Status, f"use {', '.join(Status)}")
            raise UnknownName(f"{word} is not a status; {advice}")


def names_and_ranges(
    transaction: Transaction, datasets: Sequence[DatasetId], words: Sequence[str]
) -> tuple[list[DataId], list[DataIdRange]]:
    """A word that looks like a range is a name if a chunk is called so."""
    ranges = {data_id(word): bounds for word in words if (bounds := parse_range(word)) is not None}
    keys = [ChunkKey(datasetid=datasetid, dataid=word) for datasetid in datasets for word in ranges]
    for chunk in find(transaction, keys):
        ranges.pop(chunk.dataid, None)
    return [name for word in words if (name := data_id(word)) not in ranges], list(ranges.values())


def _datasets(transaction: Transaction, selection: Selection) -> list[DatasetId]:
    if selection.datasetid is not None and selection.jobid is not None:
        raise InvalidInput("a DataSet and --job cannot be combined; give one of them")
    if selection.datasetid is not None:
        datasetid = dataset_id(selection.datasetid)
        require_dataset(transaction, datasetid)
        return [datasetid]
    if selection.jobid is None:
        raise InvalidInput("no DataSet is given; name one, or a job with --job")
    jobid = job_id(selection.jobid)
    if not (outputs := lookup.outputs_of(transaction, jobid)):
        require_job(transaction, jobid)
        raise UnknownName(f"job {jobid} has no output; add one with: odf job set {jobid} --out DATASET")
    return outputs


def _matching(
    transaction: Transaction,
    datasets: Sequence[DatasetId],
    names: Sequence[DataId],
    ranges: Sequence[DataIdRange],
    selection: Selection,
    count: int,
) -> list[Chunk]:
    return lookup.matching_chunks(
        transaction,
        datasets,
        names=names if selection.words else None,
        ranges=ranges,
        statuses=selection.statuses,
        since=selection.since,
        until=selection.until,
        stale=selection.stale,
        other_code=selection.other_code,
        count=count,
    )
