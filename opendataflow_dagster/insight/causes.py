"""causes: 700 failures often have three causes. Groups failures by reason, ignoring chunk, time and path.

Whatever varies from chunk to chunk is replaced (dataids, times, pids, counts, durations, addresses). Numbers that are
the cause stay (exit codes, errno, HTTP and vendor codes), and so do numbers in the names of mounts and hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..ledger.chunks import Chunk
from ..model.ids import ChunkKey, DatasetId, JobId

_URL = re.compile(r"\b([a-z][a-z0-9+.-]*://[^\s/'\"]+)/[^\s'\",;:)\]]*", re.IGNORECASE)
#: The first two folders identify the mount; what is below varies from chunk to chunk. Below /tmp everything varies.
_PATH = re.compile(r"(?<![\w/:.])(/tmp|/[^\s/'\",;:)\]]+/[^\s/'\",;:)\]]+)/[^\s'\",;:)\]]*")
_UNIT = (
    r"\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|%|b|bytes?|[kmgt]i?b|rows?|records?|lines?|files?|chunks?"
    r"|partitions?|tasks?|columns?|cells?|times|tries|attempts?|of)(?!\w)"
)
#: The number is the cause: an exit code, an errno, an HTTP status. Kept even if it equals the dataid.
_CODE = re.compile(
    r"((?:\b(?:exit(?:ed with)?|code|status|errno|error|err|signal|http(?:/[\d.]+)?|sqlstate|rc|returned)\b"
    r"[\s:=#(\[]*)+"
    rf"-?(?:0x[0-9a-f]+|[0-9]\w*)(?!{_UNIT})\b"
    r"|(?:(?<=: )|(?<=[(\[]))[45][0-9]{2}(?=[)\]]?\.?$)|\b[45][0-9]{2}(?-i:(?= [A-Z][a-z])))",
    re.IGNORECASE,
)
#: What varies from chunk to chunk, and its placeholder.
_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"(?<![0-9])[12][0-9]{3}-?[01][0-9]-?[0-3][0-9](?![0-9])"
            r"(?:[T _]?[0-9]{2}:?[0-9]{2}(?::?[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?(?![0-9]))?"
        ),
        "{time}",
    ),
    (re.compile(r"(?<![\w:])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?![\w:])"), "{time}"),
    (
        re.compile(
            r"\b(?=[0-9a-f-]*[0-9])[0-9a-f]{8}(?:-?[0-9a-f]{4,})+\b|\b0x[0-9a-f]+\b"
            r"|(?<=@)(?=[a-f]*[0-9])[0-9a-f]{5,16}\b",
            re.IGNORECASE,
        ),
        "{id}",
    ),
    (re.compile(rf"(?<![\w.-])[0-9]+(?:[.,][0-9]+)*(?={_UNIT})", re.IGNORECASE), "N"),
    (
        re.compile(
            r"\b((?:pid|process|thread|tid|claim|run|attempt|line|row|record|part|task|stage|executor|version|offset"
            r"|position|id|query|session|connection|batch)s?[\s:=#_-]*)[0-9]+(?:[.,:_-][0-9]+)*",
            re.IGNORECASE,
        ),
        r"\1N",
    ),
    # A number this long is a counter, even inside a name. An ephemeral port differs each time.
    (re.compile(r"[0-9]{6,}|(?<=[\w.\]]:)(?:3[3-9]|[4-6][0-9])[0-9]{3}(?![0-9])"), "N"),
    # A number on its own. One inside a name (a mount, a host, ORA-00942, an IP address) identifies it and stays.
    (re.compile(r"(?<![\w.-])(?<![\w.]:)(?![0-9]+(?:\.[0-9]+){3})[0-9]+(?:[.,:][0-9]+)*(?![\w-])(?!\.\w)(?!://)"), "N"),
)


_NO_REASON = "no reason was given"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    #: The reason, if all have the same. Otherwise what is common, with placeholders: N for a number, * for a path below
    #: a mount, {dataid}, {time} and so on.
    cause: str
    count: int
    jobs: tuple[JobId, ...]
    datasets: tuple[DatasetId, ...]
    first: datetime
    last: datetime
    #: The newest chunk of the group, and its full reason.
    example: ChunkKey
    example_job: JobId
    reason: str


def group_by_cause(failed: Iterable[Chunk]) -> list[Cause]:
    """Most frequent first."""
    groups: dict[str, list[Chunk]] = {}
    for chunk in failed:
        groups.setdefault(cause_of(chunk), []).append(chunk)
    causes = [_cause(text, chunks) for text, chunks in groups.items()]
    return sorted(causes, key=lambda cause: (-cause.count, cause.cause))


def cause_of(chunk: Chunk) -> str:
    return normalised(chunk.reason or "", _names(chunk)) or _NO_REASON


def _names(chunk: Chunk) -> dict[str, str]:
    return {"{dataid}": chunk.dataid, "{dataset}": chunk.datasetid, "{job}": chunk.jobid}


def _common(text: str, chunks: Sequence[Chunk]) -> str:
    """The reason itself, if all have the same; otherwise a placeholder only for what varies."""
    reasons = {" ".join((chunk.reason or _NO_REASON).split()) for chunk in chunks}
    if len(reasons) == 1:
        return reasons.pop()
    for placeholder, name in _names(chunks[0]).items():
        if all(_names(chunk)[placeholder] == name for chunk in chunks):
            text = text.replace(placeholder, name)
    return text


def normalised(reason: str, names: Mapping[str, str]) -> str:
    """`names`: by placeholder, the names that vary from chunk to chunk."""
    text = _PATH.sub(r"\1/*", _URL.sub(r"\1/*", " ".join(reason.split())))
    # Every second part is a code, which stays: dataid 1 is not the 1 of `exit code 1`.
    parts = _CODE.split(text)
    return "".join(part if place % 2 else _generalised(part, names) for place, part in enumerate(parts))


def _generalised(text: str, names: Mapping[str, str]) -> str:
    # Longest first: a dataid may be part of the DataSet's name.
    for placeholder, name in sorted(names.items(), key=lambda item: -len(item[1])):
        text = _as_word(name).sub(placeholder, text)
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def _as_word(name: str) -> re.Pattern[str]:
    """Dataid `1` is not the 1 in `line 12`."""
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _cause(text: str, chunks: list[Chunk]) -> Cause:
    latest = max(chunks, key=lambda chunk: chunk.modified)
    return Cause(
        cause=_common(text, chunks),
        count=len(chunks),
        jobs=tuple(sorted({chunk.jobid for chunk in chunks})),
        datasets=tuple(sorted({chunk.datasetid for chunk in chunks})),
        first=min(chunk.modified for chunk in chunks),
        last=latest.modified,
        example=ChunkKey(datasetid=latest.datasetid, dataid=latest.dataid),
        example_job=latest.jobid,
        reason=latest.reason or "",
    )
