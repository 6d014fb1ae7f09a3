"""The ids of the system, and the one rule for all of them: anything printable, not blank, not endless.

Postgres has the same rule as a constraint, so that rows which others write obey it, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NewType

from .errors import InvalidName

DatasetId = NewType("DatasetId", str)
JobId = NewType("JobId", str)
DataId = NewType("DataId", str)
ClaimId = NewType("ClaimId", int)
ManifestId = NewType("ManifestId", int)
RunId = NewType("RunId", int)

# What a name or a dataid may take in an index entry of Postgres.
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


def natural_key(dataid: str) -> tuple[str, str]:
    """Sorts 9 before 10 and dates by date; `dataflow.natural_key` of the ledger does the same."""
    padded = _DIGITS.sub(lambda run: run.group()[-20:].rjust(20, "0"), dataid)
    return padded[:300], dataid


def is_storable(text: str) -> bool:
    """Postgres holds no NUL, and only what UTF-8 can say."""
    return "\x00" not in text and text == text.encode(errors="ignore").decode()


def _checked(what: str, text: str, max_bytes: int) -> str:
    if not isinstance(text, str):
        raise InvalidName(f"a {what} must be text, not {type(text).__name__}; give it as a string")
    if not text.strip(" "):
        raise InvalidName(f"a {what} must not be empty; give it at least one visible character")
    if found := _CONTROL.search(text):
        raise InvalidName(f"the {what} {text[:60]!r} holds the control character {found.group()!r}; remove it")
    if not is_storable(text):
        raise InvalidName(f"the {what} {text[:60]!r} is not valid Unicode; give it as UTF-8 text")
    if (size := len(text.encode())) > max_bytes:
        raise InvalidName(f"the {what} {text[:60]!r}... has {size} bytes; at most {max_bytes} are allowed, shorten it")
    return text
