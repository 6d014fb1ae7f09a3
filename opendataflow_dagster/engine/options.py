"""What may be said of a DataSet, and whether it was said right: a misspelt option would silently say nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypedDict

from pyspark.sql.types import StructType

from ..model.check import Check
from ..model.errors import InvalidDefinition
from ..model.job import ChunkMapping, Policy
from ..model.partitions import Partitions

if TYPE_CHECKING:
    from .declaration import Declaration


class Options(TypedDict, total=False):
    """What may be said of every DataSet that this project makes."""

    #: Which DataSet an input is, where it has another name.
    inputs: Mapping[str, str | Declaration]
    #: Which chunks of an input a chunk needs: EQUAL, ALL, within(...) or ListedChunks(function).
    mapping: Mapping[str, ChunkMapping]
    #: Which chunks there are; None: any dataid, announced as they come.
    partitions: Partitions | None
    checks: Sequence[Check]
    schema: StructType | None
    #: Lease, attempts, what is retried, order, cascade.
    policy: Policy
    #: How many chunks are made at a time, at first; `odf throttle` changes it while it runs.
    concurrency: int | None
    #: Where its files go, when not below the warehouse.
    root: str | None
    #: How many chunks one run of a backfill takes.
    chunks_per_run: int
    #: Announce every chunk without being asked, so that the sensor makes it.
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
    #: May two chunks have the same content?
    repeats: bool
    #: Keep a table for outside readers in the catalog of Spark (docs/warehouse.md).
    table: bool


def refuse_wrong_options(name: str, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if option not in _RIGHT:
            close = get_close_matches(option, _RIGHT, n=1)
            advice = f"did you mean {close[0]}?" if close else f"there are {', '.join(_RIGHT)}"
            raise InvalidDefinition(f"DataSet {name}: there is no option {option}; {advice}")
        is_right, wanted = _RIGHT[option]
        if not is_right(value):
            raise InvalidDefinition(f"DataSet {name}: {option} is {value!r}; give {wanted}")


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _are_partitions(value: object) -> bool:
    return isinstance(value, Partitions | None)


def _are_checks(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, Check) for one in value)


def _is_schema(value: object) -> bool:
    return isinstance(value, StructType | None)


def _is_policy(value: object) -> bool:
    return isinstance(value, Policy)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number_or_none(value: object) -> bool:
    return value is None or _is_number(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: object) -> bool:
    return isinstance(value, str | None)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


_RIGHT: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "inputs": (_is_mapping, "a dict from parameter to DataSet"),
    "mapping": (_is_mapping, "a dict from parameter to EQUAL, ALL, within(...) or ListedChunks(function)"),
    "partitions": (_are_partitions, "daily(...), hourly(...), weekly(...), monthly(...), static(...) or ranges(...)"),
    "checks": (_are_checks, "a list of checks, such as [not_null('id')]"),
    "schema": (_is_schema, "a StructType, such as StructType.fromDDL('id long')"),
    "policy": (_is_policy, "a Policy(...)"),
    "concurrency": (_is_number_or_none, "a number"),
    "root": (_is_text_or_none, "a folder or URL as text"),
    "chunks_per_run": (_is_number, "a number"),
    "planned": (_is_bool, "True or False"),
    "job": (_is_text_or_none, "a name"),
    "owner": (_is_text_or_none, "a name"),
    "domain": (_is_text_or_none, "a name"),
    "description": (_is_text_or_none, "a text"),
    "timezone": (_is_text, "the name of a time zone, such as UTC"),
    "skipped_input": (lambda value: value in ("waits", "passes"), "'waits' or 'passes'"),
    "repeats": (_is_bool, "True or False"),
    "table": (_is_bool, "True or False"),
}
