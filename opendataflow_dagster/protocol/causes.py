"""causes: 700 failures have three causes. Group them by what went wrong, whatever chunk, path or number it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ..ledger.chunks import Chunk
from ..model.ids import ChunkKey, DatasetId, JobId

_URL = re.compile(r"\b([a-z][a-z0-9+.-]*://[^\s/'\"]+)/[^\s'\",;:)\]]*", re.IGNORECASE)
#: Two folders say which mount it is; what lies below differs from chunk to chunk.
_PATH = re.compile(r"(?<![\w/:.])(/[^\s/'\",;:)\]]+/[^\s/'\",;:)\]]+)/[^\s'\",;:)\]]*")
_LONG_ID = re.compile(r"\b(?=[0-9a-f-]*[0-9])[0-9a-f]{8}(?:-?[0-9a-f]{4,}){1,}\b", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+(?:[.,:][0-9]+)*(?!://)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    #: The reason that they have in common: N for numbers, * below a mount, {dataid} for their own names.
    cause: str
    count: int
    jobs: tuple[JobId, ...]
    datasets: tuple[DatasetId, ...]
    first: datetime
    last: datetime
    #: One of them, and what it says in full.
    example: ChunkKey
    example_job: JobId
    reason: str


def causes(failed: Iterable[Chunk]) -> list[Cause]:
    """The most frequent first."""
    groups: dict[str, list[Chunk]] = {}
    for one in failed:
        groups.setdefault(cause_of(one), []).append(one)
    found = [_cause(text, chunks) for text, chunks in groups.items()]
    return sorted(found, key=lambda one: (-one.count, one.cause))


def cause_of(chunk: Chunk) -> str:
    names = {"{dataid}": chunk.dataid, "{dataset}": chunk.datasetid, "{job}": chunk.jobid}
    return normalised(chunk.reason or "", names) or "no reason was given"


def normalised(reason: str, names: Mapping[str, str]) -> str:
    """`names`: what is called so in this reason and otherwise in the next, by the word that stands for it."""
    text = " ".join(reason.split())
    text = _URL.sub(r"\1/*", text)
    text = _PATH.sub(r"\1/*", text)
    # Longest first: a dataid may be a part of the DataSet's name.
    for placeholder, name in sorted(names.items(), key=lambda item: -len(item[1])):
        text = _as_word(name).sub(placeholder, text)
    text = _LONG_ID.sub("{id}", text)
    return _NUMBER.sub("N", text)


def _as_word(name: str) -> re.Pattern[str]:
    """A dataid `1` is not the 1 in `line 12`."""
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _cause(text: str, chunks: list[Chunk]) -> Cause:
    latest = max(chunks, key=lambda one: one.modified)
    return Cause(
        cause=text,
        count=len(chunks),
        jobs=tuple(sorted({one.jobid for one in chunks})),
        datasets=tuple(sorted({one.datasetid for one in chunks})),
        first=min(one.modified for one in chunks),
        last=latest.modified,
        example=ChunkKey(datasetid=latest.datasetid, dataid=latest.dataid),
        example_job=latest.jobid,
        reason=latest.reason or "",
    )
