"""What a check is: the columns it needs, the figures that Spark measures for it during the write, and its judgement.

To add a check, write a subclass with `judge` and a test. The checks that come with the framework are in `checks`.

    @dataclass(frozen=True, kw_only=True)
    class MeanBetween(Check):
        low: float
        high: float

        def judge(self, figures: Figures) -> tuple[bool, str]:
            (mean,) = figures.values
            return mean is not None and self.low <= mean <= self.high, f"the mean is {mean}"

    MeanBetween(name="mean delay", columns=("delay",), aggregates=("avg(delay)",), low=-10, high=60)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from .errors import InvalidDefinition
from .text import brief, listing

#: error: a version that fails is not published. warn: it is published, and the result is recorded and shown.
Severity: TypeAlias = Literal["error", "warn"]
SEVERITIES: Final = ("error", "warn")


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What was measured of a version while it was written."""

    rows: int
    #: The results of the check's aggregates, in their order.
    values: tuple[Any, ...]
    #: The rows of the chunk before it; None: there is none, or the check does not compare.
    previous_rows: int | None
    now: datetime


@dataclass(frozen=True, kw_only=True)
class Check(ABC):
    #: Unique within a DataSet.
    name: str
    #: Compared with the schema, if one is declared, when the definitions load, and with the rows before every write.
    columns: tuple[str, ...] = ()
    #: The Spark types that the columns may have, such as `string`; empty: any.
    column_types: tuple[str, ...] = ()
    #: Aggregate expressions in Spark SQL over the rows.
    aggregates: tuple[str, ...] = ()
    #: Group the written rows by these columns first: the aggregates then see one row for each group, with these columns
    #: and the group's size as GROUP_ROWS. Costs a second pass over the data.
    group_by: tuple[str, ...] = ()
    compares_with_previous: bool = False
    severity: Severity = "error"

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise InvalidDefinition(
                f"check {self.name}: severity is {brief(self.severity)}; it must be {' or '.join(SEVERITIES)}"
            )

    @abstractmethod
    def judge(self, figures: Figures) -> tuple[bool, str]:
        """Whether the version passes, and the figures in words."""


#: The size of a group, where a check groups rows.
GROUP_ROWS = "odf_group_rows"


def refuse_repeated(checks: Iterable[Check], whose: str) -> None:
    """Results are told apart by their names."""
    names = [check.name for check in checks]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidDefinition(
            f"{whose} declares the check {', '.join(repeated)} twice; keep one, or give them different names"
        )


def refuse_unknown_columns(
    check: Check, names: Collection[str], whose: str, is_case_sensitive: Callable[[], bool] = lambda: False
) -> None:
    """Spark ignores case unless the session has spark.sql.caseSensitive; only a name that differs asks for it."""
    unknown = [column for column in dict.fromkeys((*check.columns, *check.group_by)) if column not in names]
    if unknown and not is_case_sensitive():
        in_lower_case = {name.lower() for name in names}
        unknown = [column for column in unknown if column.lower() not in in_lower_case]
    if unknown:
        raise InvalidDefinition(
            f"{whose}: check {check.name} needs column {', '.join(unknown)}, which does not exist "
            f"(columns: {listing(names, 20)}); correct the check"
        )


def refuse_wrong_types(check: Check, types: Mapping[str, str], whose: str) -> None:
    """`types`: each column of a declared schema, all of the check's among them, with its type as Spark writes it."""
    by_name = {name.lower(): type_name for name, type_name in types.items()}
    for column in check.columns if check.column_types else ():
        type_name = by_name[column.lower()]
        if not type_name.startswith(check.column_types):
            raise InvalidDefinition(
                f"{whose}: check {check.name} needs a {' or '.join(check.column_types)} column, "
                f"but {column} is {type_name}; correct the check"
            )
