"""select: which chunks does a person mean? Names, ranges in natural order, a status, a window of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..ledger.chunks import Chunk, find
from ..ledger.database import Ledger, Transaction
from ..model.errors import InvalidInput, UnknownName
from ..model.ids import ChunkKey, DataId, DatasetId, data_id, dataset_id, job_id

_RANGE = ".."
_ALL = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Of a DataSet, or of all outputs of a Job. No words: all its chunks."""

    datasetid: str | None = None
    jobid: str | None = None
    #: Dataids, and ranges `A..B`, `A..`, `..B`. A chunk that is really named so is not taken for a range.
    words: Sequence[str] = ()
    statuses: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def filters(self) -> bool:
        return bool(self.statuses or self.since or self.until)


def select(ledger: Ledger, wanted: Selection, *, count: int = _ALL) -> list[Chunk]:
    """In natural order. A name without a chunk is an error, a range without one is none."""
    with ledger.transaction() as transaction:
        datasets = _datasets(transaction, wanted)
        names, ranges = _words(transaction, datasets, wanted.words)
        found = _matching(transaction, datasets, names, ranges, wanted, count)
    if not wanted.filters and count == _ALL and (missing := set(names) - {one.dataid for one in found}):
        raise UnknownName(
            f"{' and '.join(datasets)} has no chunk {', '.join(sorted(missing)[:3])}; "
            f"look at its chunks with: odf chunks {datasets[0]} --list"
        )
    return found


def keys(ledger: Ledger, wanted: Selection) -> list[ChunkKey]:
    """As `select`, for a verb; a name need not have a chunk yet, the verb decides. No chunk at all is an error."""
    with ledger.transaction() as transaction:
        datasets = _datasets(transaction, wanted)
        names, ranges = _words(transaction, datasets, wanted.words)
        found = [ChunkKey(datasetid=one, dataid=name) for one in datasets for name in names if not wanted.filters]
        if ranges or wanted.filters or not wanted.words:
            matching = _matching(transaction, datasets, names if wanted.filters else [], ranges, wanted, _ALL)
            found += [ChunkKey(datasetid=one.datasetid, dataid=one.dataid) for one in matching]
    if not found:
        raise InvalidInput(
            f"no chunk of {' and '.join(datasets)} is meant by {' '.join(wanted.words) or 'that'}; "
            f"look at them with: odf chunks {datasets[0]} --list"
        )
    return list(dict.fromkeys(found))


def failed(
    ledger: Ledger,
    *,
    datasetid: str | None = None,
    jobid: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Chunk]:
    """What failed: everywhere, or of a DataSet or a Job; at any time, or in a window."""
    with ledger.transaction() as transaction:
        everywhere = datasetid is None and jobid is None
        datasets = None if everywhere else _datasets(transaction, Selection(datasetid=datasetid, jobid=jobid))
        found = transaction.rows("failed_chunks", datasetids=datasets, since=since, until=until)
    return [Chunk(**row) for row in found]


def require_dataset(transaction: Transaction, datasetid: DatasetId) -> None:
    if not transaction.value("is_dataset", datasetid=datasetid):
        raise UnknownName(f"there is no DataSet {datasetid}; see them with: odf dataset list")


def _datasets(transaction: Transaction, wanted: Selection) -> list[DatasetId]:
    if wanted.datasetid is not None and wanted.jobid is not None:
        raise InvalidInput("give a DataSet or a Job, not both")
    if wanted.datasetid is not None:
        datasetid = dataset_id(wanted.datasetid)
        require_dataset(transaction, datasetid)
        return [datasetid]
    if wanted.jobid is None:
        raise InvalidInput("name a DataSet, or a Job with --job")
    jobid = job_id(wanted.jobid)
    if not (found := [DatasetId(row["datasetid"]) for row in transaction.rows("outputs_of", jobid=jobid)]):
        raise UnknownName(f"there is no job {jobid} that produces anything; see the jobs with: odf job list")
    return found


def _words(
    transaction: Transaction, datasets: Sequence[DatasetId], words: Sequence[str]
) -> tuple[list[DataId], list[tuple[str, str]]]:
    """Names and ranges."""
    for word in words:
        data_id(word)
    like_ranges = [DataId(word) for word in words if _RANGE in word]
    named = find(transaction, [ChunkKey(datasetid=one, dataid=word) for one in datasets for word in like_ranges])
    really = {one.dataid for one in named}
    ranges = [word.partition(_RANGE) for word in like_ranges if word not in really]
    names = [DataId(word) for word in words if _RANGE not in word or word in really]
    return names, [(low, high) for low, _, high in ranges]


def _matching(
    transaction: Transaction,
    datasets: Sequence[DatasetId],
    names: Sequence[DataId],
    ranges: Sequence[tuple[str, str]],
    wanted: Selection,
    count: int,
) -> list[Chunk]:
    found = transaction.rows(
        "chunks_matching",
        datasetids=list(datasets),
        all=not wanted.words,
        names=list(names),
        lows=[low for low, _ in ranges],
        highs=[high for _, high in ranges],
        statuses=list(wanted.statuses) if wanted.statuses else None,
        since=wanted.since,
        until=wanted.until,
        count=count,
    )
    return [Chunk(**row) for row in found]
