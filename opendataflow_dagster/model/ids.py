"""Ids, and the one rule for all of them: printable, not blank, of limited length.

Postgres enforces the same rule with constraints, for rows that other clients write.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType

from .errors import InvalidName
from .text import listing

DatasetId = NewType("DatasetId", str)
JobId = NewType("JobId", str)
DataId = NewType("DataId", str)
ClaimId = NewType("ClaimId", int)
ManifestId = NewType("ManifestId", int)
RunId = NewType("RunId", int)

# So that a name and a dataid together fit in an index entry of Postgres.
MAX_NAME_BYTES = 200
MAX_DATAID_BYTES = 500

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_DIGITS = re.compile("[0-9]+")


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class ChunkKey:
    datasetid: DatasetId
    dataid: DataId

    def __post_init__(self) -> None:
        dataset_id(self.datasetid)
        data_id(self.dataid)

    def __str__(self) -> str:
        return f"{self.datasetid}/{self.dataid}"


def dataset_id(text: str) -> DatasetId:
    return DatasetId(_checked("DataSet name", text, MAX_NAME_BYTES))


def job_id(text: str) -> JobId:
    return JobId(_checked("job name", text, MAX_NAME_BYTES))


def data_id(text: str) -> DataId:
    return DataId(_checked("dataid", text, MAX_DATAID_BYTES))


def code_version(text: str, datasetid: DatasetId) -> str:
    return _checked(f"code_version of DataSet {datasetid}", text, MAX_NAME_BYTES)


def summary(keys: Sequence[ChunkKey]) -> str:
    """`3 chunks (delays/2024-01-09, ...)`; more than five are counted by DataSet."""
    if len(keys) == 1:
        return str(keys[0])
    if len(keys) <= 5:
        return f"{len(keys)} chunks ({', '.join(map(str, keys))})"
    counts = Counter(key.datasetid for key in keys)
    by_dataset = listing([f"{datasetid}: {count:,}" for datasetid, count in counts.items()], 5)
    return f"{len(keys):,} chunks ({by_dataset})"


def natural_key(dataid: str) -> tuple[str, str]:
    """Sorts 9 before 10 and dates by date, as `dataflow.natural_key` does in the ledger."""
    padded = _DIGITS.sub(lambda digits: digits.group()[-20:].rjust(20, "0"), dataid)
    return padded[:300], dataid


def is_storable(text: str) -> bool:
    """Postgres stores no NUL, and only valid UTF-8."""
    return "\x00" not in text and text == text.encode(errors="ignore").decode()


def _checked(what: str, text: str, max_bytes: int) -> str:
    if not isinstance(text, str):
        raise InvalidName(f"a {what} must be text, not {type(text).__name__}; pass a string")
    if not text.strip(" "):
        raise InvalidName(f"a {what} must not be empty; use at least one visible character")
    if control := _CONTROL.search(text):
        raise InvalidName(f"the {what} {text[:60]!r} contains the control character {control.group()!r}; remove it")
    if not is_storable(text):
        raise InvalidName(f"the {what} {text[:60]!r} is not valid Unicode; pass UTF-8 text")
    if (size := len(text.encode())) > max_bytes:
        raise InvalidName(f"the {what} {text[:60]!r}... has {size} bytes, more than {max_bytes}; shorten it")
    return text
