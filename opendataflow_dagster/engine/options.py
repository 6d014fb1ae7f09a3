"""The options of a DataSet. A misspelt or wrong option is an error, because it would silently have no effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import NoneType
from typing import TYPE_CHECKING, Literal, TypedDict

from ..model.check import Check
from ..model.errors import InvalidDefinition
from ..model.job import ChunkMapping, Policy
from ..model.partitions import Partitions, RangePartitions, StaticPartitions, TimePartitions
from ..model.text import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from .declaration import Declaration


class Options(TypedDict, total=False):
    """Options of every DataSet that this project makes."""

    #: The DataSet of an input, where the names differ.
    inputs: Mapping[str, str | Declaration]
    #: Which chunks of an input each chunk needs: EQUAL, ALL, within(...) or ListedChunks(function).
    mapping: Mapping[str, ChunkMapping]
    #: Which chunks exist; None: any dataid, as announced.
    partitions: Partitions | None
    checks: Sequence[Check]
    schema: StructType | None
    #: Lease, retries, order.
    policy: Policy
    #: The initial concurrency limit; `odf throttle` changes it at run time.
    concurrency: int | None
    #: The folder of its files, if not below the warehouse.
    root: str | None
    #: How many chunks one run of a backfill takes.
    chunks_per_run: int
    #: Announce every chunk, so that the sensor makes it without a request.
    planned: bool
    #: The name of the producing Job.
    job: str | None
    owner: str | None
    #: The business domain: the group in Dagster.
    domain: str | None
    description: str | None
    timezone: str
    #: Does a SKIPPED chunk let its consumers run without it?
    skipped_input: Literal["waits", "passes"]
    #: When an input has a new version: run again, or be marked as stale until a person decides?
    on_new_input: Literal["rebuild", "mark"]
    #: May two chunks have the same content?
    repeats: bool
    #: The version of the code, instead of a fingerprint; raise it when code that the function calls changes.
    code_version: str | None
    #: How long after the end of a partition its chunk is expected READY, by the clock of the time zone: "06:00".
    expected_by: str | None
    #: How old the newest READY chunk may be.
    fresh_within: timedelta | None
    #: Keep a Spark catalog table for outside readers (docs/guides/operate.md).
    table: bool


def refuse_wrong_options(name: str, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if option not in _VALID:
            advice = did_you_mean(option, _VALID, f"the options are {', '.join(_VALID)}")
            raise InvalidDefinition(f"DataSet {name}: there is no option {option}; {advice}")
        is_valid, wanted = _VALID[option]
        if not is_valid(value):
            raise InvalidDefinition(f"DataSet {name}: {option} is {value!r}; give {wanted}")


def _is(*kinds: type) -> Callable[[object], bool]:
    """In Python, True is an int; here it is not."""
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _are_checks(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(check, Check) for check in value)


def _is_schema(value: object) -> bool:
    from pyspark.sql.types import StructType

    return isinstance(value, StructType | None)


_VALID: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "inputs": (_is(Mapping), "a dict from parameter to DataSet"),
    "mapping": (_is(Mapping), "a dict from parameter to EQUAL, ALL, within(...) or ListedChunks(function)"),
    "partitions": (
        _is(TimePartitions, StaticPartitions, RangePartitions, NoneType),
        "daily(...), hourly(...), weekly(...), monthly(...), static(...) or ranges(...)",
    ),
    "checks": (_are_checks, "a list of checks, such as [not_null('id')]"),
    "schema": (_is_schema, "a StructType, such as StructType.fromDDL('id long')"),
    "policy": (_is(Policy), "a Policy(...)"),
    "concurrency": (_is(int, NoneType), "a number"),
    "root": (_is(str, NoneType), "a folder or URL as text"),
    "chunks_per_run": (_is(int), "a number"),
    "planned": (_is(bool), "True or False"),
    "job": (_is(str, NoneType), "a name"),
    "owner": (_is(str, NoneType), "a name"),
    "domain": (_is(str, NoneType), "a name"),
    "description": (_is(str, NoneType), "a text"),
    "timezone": (_is(str), "the name of a time zone, such as UTC"),
    "skipped_input": (lambda value: value in ("waits", "passes"), "'waits' or 'passes'"),
    "on_new_input": (lambda value: value in ("rebuild", "mark"), "'rebuild' or 'mark'"),
    "repeats": (_is(bool), "True or False"),
    "code_version": (_is(str, NoneType), "a text, such as '2'"),
    "expected_by": (_is(str, NoneType), "a time, such as '06:00'"),
    "fresh_within": (_is(timedelta, NoneType), "a timedelta, such as timedelta(hours=26)"),
    "table": (_is(bool), "True or False"),
}
