"""READY chunks made by code other than their DataSet's, as ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model.ids import DataId, DatasetId
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherCodeRange:
    """Neighbouring chunks, in natural order, that the same code made."""

    datasetid: DatasetId
    first: DataId
    last: DataId
    chunks: int
    #: The code that made them, and the code that would make them now.
    code_version: str
    current_code: str
    #: How many such ranges and chunks the DataSet has.
    ranges: int
    all_chunks: int

    @property
    def dataids(self) -> str:
        """As commands take it."""
        return self.first if self.first == self.last else f"{self.first}..{self.last}"


def other_code(
    transaction: Transaction, current_codes: Mapping[DatasetId, str | None], count: int
) -> list[OtherCodeRange]:
    """In natural order, at most so many ranges of each DataSet. A DataSet whose current code is unknown has none."""
    known = {datasetid: code for datasetid, code in current_codes.items() if code is not None}
    if not known:
        return []
    ranges = transaction.rows("other_code", datasetids=list(known), code_versions=list(known.values()), count=count)
    return [OtherCodeRange(**row) for row in ranges]
