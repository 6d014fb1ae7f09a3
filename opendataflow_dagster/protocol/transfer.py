"""exchange: DataSets and Jobs as JSON, out of a ledger and into another. Importing the same again changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from ..ledger import definitions
from ..ledger.database import Ledger, Transaction
from ..model.dataset import Dataset
from ..model.definition import Connection, Definition, mapping
from ..model.errors import InvalidDefinition, UnknownName
from ..model.ids import DatasetId, JobId, is_storable
from ..model.job import Input, Job, Policy
from ..model.partitions import partitions_from_json
from .register import register_in

FORMAT = 1
_T = TypeVar("_T")

#: What JSON has, in words.
_KINDS: Final[dict[type, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_TEXT_OR_NULL: Final = (str, type(None))
_OBJECT_OR_NULL: Final = (dict, type(None))
_DATASET: Final[dict[str, tuple[type, ...]]] = {
    **{field.name: _TEXT_OR_NULL for field in dataclasses.fields(Dataset)},
    **dict.fromkeys(("datasetid", "skipped_input", "timezone"), (str,)),
    "repeats": (bool,),
    "partitions": _OBJECT_OR_NULL,
    "connection": _OBJECT_OR_NULL,
}
_CONNECTION: Final = dict.fromkeys(Connection.__slots__, _TEXT_OR_NULL)
_JOB: Final[dict[str, tuple[type, ...]]] = {
    "jobid": (str,),
    "inputs": (list,),
    "outputs": (list,),
    "environment": _OBJECT_OR_NULL,
    "policy": _OBJECT_OR_NULL,
}
_POLICY: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("ordered", "cascade", "catch_up"), (bool,)),
    **dict.fromkeys(("lease", "retry_delay"), (float, int)),
    "max_attempts": (int,),
    "retry_on": _TEXT_OR_NULL,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    datasets: tuple[Definition, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """By name; `dataset flights`, `job average`."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]


def registry(ledger: Ledger, *, datasets: Sequence[str] | None = None, jobs: Sequence[str] | None = None) -> Registry:
    """All, or those named; a name that is not registered is an error."""
    with ledger.transaction() as transaction:
        found = _registry(transaction, datasets, jobs)
    if missing := sorted(set(datasets or ()) - {one.dataset.datasetid for one in found.datasets}):
        raise UnknownName(f"there is no DataSet {missing[0]}; see them with: odf dataset list")
    if missing := sorted(set(jobs or ()) - {one.jobid for one in found.jobs}):
        raise UnknownName(f"there is no job {missing[0]} that produces anything; see the jobs with: odf job list")
    return found


def put(ledger: Ledger, wanted: Registry) -> Imported:
    """All of it or, where it contradicts itself or the ledger, nothing."""
    with ledger.transaction() as transaction:
        done = changes(_registry(transaction), wanted)
        register_in(transaction, [one.dataset for one in wanted.datasets], wanted.jobs)
        definitions.put_connections(transaction, wanted.datasets)
    return done


def changes(before: Registry, wanted: Registry) -> Imported:
    """What `put` does to a ledger that has `before`."""
    had, names = _named(before), _named(wanted)
    return Imported(
        new=tuple(name for name in names if name not in had),
        changed=tuple(name for name in names if name in had and had[name] != names[name]),
        unchanged=tuple(name for name in names if name in had and had[name] == names[name]),
    )


def to_json(known: Registry) -> dict[str, object]:
    return {
        "format": FORMAT,
        "datasets": [dataset_json(one) for one in known.datasets],
        "jobs": [job_json(one) for one in known.jobs],
    }


def from_json(document: object) -> Registry:
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise InvalidDefinition("that is no export of DataSets and Jobs (format 1); make one with: odf job export")
    _refuse_unfit("the document", document, {"format": (int,), "datasets": (list,), "jobs": (list,)})
    return Registry(
        datasets=tuple(_read(one, "datasetid", _dataset) for one in document.get("datasets", ())),
        jobs=tuple(_read(one, "jobid", _job) for one in document.get("jobs", ())),
    )


def dataset_json(one: Definition) -> dict[str, object]:
    values = {field.name: getattr(one.dataset, field.name) for field in dataclasses.fields(Dataset)}
    values["foreign_ready"] = one.dataset.foreign_ready_or_default
    values["partitions"] = one.dataset.partitions.to_json() if one.dataset.partitions else None
    return {**values, "connection": dataclasses.asdict(one.connection)}


def job_json(one: Job) -> dict[str, object]:
    policy = dataclasses.asdict(one.policy)
    return {
        "jobid": one.jobid,
        "inputs": [
            {"datasetid": each.datasetid, "mapping": each.mapping.kind}
            for each in sorted(one.inputs, key=lambda each: each.datasetid)
        ],
        "outputs": sorted(one.outputs),
        "environment": dict(sorted(one.environment.items())),
        "policy": {
            name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in policy.items()
        },
    }


def _named(known: Registry) -> dict[str, dict[str, object]]:
    return {
        **{f"dataset {one.dataset.datasetid}": dataset_json(one) for one in known.datasets},
        **{f"job {one.jobid}": job_json(one) for one in known.jobs},
    }


def _registry(
    transaction: Transaction, datasets: Sequence[str] | None = None, jobs: Sequence[str] | None = None
) -> Registry:
    return Registry(
        datasets=tuple(definitions.datasets(transaction, datasets)), jobs=tuple(definitions.jobs(transaction, jobs))
    )


def _dataset(value: Mapping[str, Any]) -> Definition:
    name = f"DataSet {_name(value, 'datasetid')}"
    _refuse_unfit(name, value, _DATASET)
    connection = value.get("connection") or {}
    _refuse_unfit(f"the connection of {name}", connection, _CONNECTION)
    given = {key: one for key, one in value.items() if key != "connection"}
    if given.get("partitions") is not None:
        given["partitions"] = partitions_from_json(given["partitions"])
    return Definition(dataset=Dataset(**given), connection=Connection(**connection))


def _job(value: Mapping[str, Any]) -> Job:
    name = f"job {_name(value, 'jobid')}"
    _refuse_unfit(name, value, _JOB)
    policy = dict(value.get("policy") or {})
    _refuse_unfit(f"the policy of {name}", policy, _POLICY)
    environment = dict(value.get("environment") or {})
    _refuse_unfit(f"the environment of {name}", environment, dict.fromkeys(environment, _TEXT_OR_NULL))
    for span in ("lease", "retry_delay"):
        if span in policy:
            policy[span] = timedelta(seconds=policy[span])
    return Job(
        jobid=JobId(value["jobid"]),
        inputs=tuple(_input(name, _object(one)) for one in value.get("inputs", ())),
        outputs=tuple(DatasetId(one) for one in value.get("outputs", ())),
        environment=environment,
        policy=Policy(**policy),
    )


def _input(job: str, value: Mapping[str, Any]) -> Input:
    _refuse_unfit(f"an input of {job}", value, {"datasetid": (str,), "mapping": (str,)})
    return Input(datasetid=DatasetId(_name(value, "datasetid")), mapping=mapping(value.get("mapping", "equal")))


def _read(value: object, key: str, read: Callable[[Mapping[str, Any]], _T]) -> _T:
    entry = _object(value)
    try:
        return read(entry)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDefinition(
            f"{entry.get(key)!r} has a value of the wrong kind ({error}); compare with: odf job export"
        ) from error


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidDefinition(f"{value!r} is no object; compare with: odf job export")
    return value


def _name(value: Mapping[str, Any], key: str) -> str:
    if not isinstance(value.get(key), str):
        raise InvalidDefinition(f"an entry has no {key}; give it one")
    return str(value[key])


def _refuse_unfit(what: str, value: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> None:
    """Every value has a name that is known, is of the kind that it must be, and can be stored."""
    if strangers := sorted(set(value) - set(kinds)):
        raise InvalidDefinition(f"{what} has {strangers[0]!r}, which is not known; use {', '.join(kinds)}")
    for name, one in value.items():
        # Exactly: for Python, true is a number.
        if type(one) not in kinds[name]:
            wanted = " or ".join(_KINDS[kind] for kind in kinds[name])
            raise InvalidDefinition(f"{what}: {name} is {one!r}, but must be {wanted}; compare with: odf job export")
        if isinstance(one, str) and not is_storable(one):
            raise InvalidDefinition(f"{what}: {name} holds a character that cannot be stored, such as NUL; remove it")
