"""exchange: DataSets and Jobs as JSON, out of a ledger and into another. Importing the same again changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from ..ledger import definitions
from ..ledger.database import Ledger
from ..ledger.definitions import Connection, Definition
from ..model.dataset import Dataset
from ..model.errors import InvalidDefinition, UnknownName
from ..model.ids import DatasetId, JobId
from ..model.job import Input, Job, Policy
from ..model.partitions import partitions_from_json
from .register import register

FORMAT = 1
_T = TypeVar("_T")


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
        found = Registry(
            datasets=tuple(definitions.datasets(transaction, datasets)),
            jobs=tuple(definitions.jobs(transaction, jobs)),
        )
    if missing := sorted(set(datasets or ()) - {one.dataset.datasetid for one in found.datasets}):
        raise UnknownName(f"there is no DataSet {missing[0]}; see them with: odf dataset list")
    if missing := sorted(set(jobs or ()) - {one.jobid for one in found.jobs}):
        raise UnknownName(f"there is no job {missing[0]} that produces anything; see the jobs with: odf job list")
    return found


def put(ledger: Ledger, wanted: Registry) -> Imported:
    """All of it or, where it contradicts itself or the ledger, nothing."""
    before = _named(registry(ledger))
    register(ledger, [one.dataset for one in wanted.datasets], wanted.jobs)
    with ledger.transaction() as transaction:
        for one in wanted.datasets:
            definitions.put_connection(transaction, one.dataset.datasetid, one.connection)
    names = _named(wanted)
    return Imported(
        new=tuple(name for name in names if name not in before),
        changed=tuple(name for name in names if name in before and before[name] != names[name]),
        unchanged=tuple(name for name in names if name in before and before[name] == names[name]),
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
    _refuse_strangers("the document", document, ("format", "datasets", "jobs"))
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


def _dataset(value: Mapping[str, Any]) -> Definition:
    name = f"DataSet {_name(value, 'datasetid')}"
    known = [field.name for field in dataclasses.fields(Dataset)]
    _refuse_strangers(name, value, [*known, "connection"])
    _refuse_strangers(f"the connection of {name}", value.get("connection") or {}, Connection.__slots__)
    given = {key: one for key, one in value.items() if key in known and key != "datasetid"}
    if given.get("partitions") is not None:
        given["partitions"] = partitions_from_json(_object(given["partitions"]))
    return Definition(
        dataset=Dataset(datasetid=DatasetId(value["datasetid"]), **given),
        connection=Connection(**(value.get("connection") or {})),
    )


def _job(value: Mapping[str, Any]) -> Job:
    name = f"job {_name(value, 'jobid')}"
    _refuse_strangers(name, value, ("jobid", "inputs", "outputs", "environment", "policy"))
    policy = dict(value.get("policy") or {})
    _refuse_strangers(f"the policy of {name}", policy, [field.name for field in dataclasses.fields(Policy)])
    for span in ("lease", "retry_delay"):
        if span in policy:
            policy[span] = timedelta(seconds=policy[span])
    return Job(
        jobid=JobId(value["jobid"]),
        inputs=tuple(
            Input(datasetid=DatasetId(one["datasetid"]), mapping=definitions.mapping(one.get("mapping", "equal")))
            for one in map(_object, value.get("inputs", ()))
        ),
        outputs=tuple(DatasetId(one) for one in value.get("outputs", ())),
        environment=dict(value.get("environment") or {}),
        policy=Policy(**policy),
    )


def _read(value: object, key: str, read: Callable[[Mapping[str, Any]], _T]) -> _T:
    entry = _object(value)
    try:
        return read(entry)
    except (TypeError, AttributeError, KeyError, ValueError) as error:
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


def _refuse_strangers(what: str, value: Mapping[str, Any], known: Sequence[str]) -> None:
    if strangers := sorted(set(value) - set(known)):
        raise InvalidDefinition(f"{what} has {strangers[0]!r}, which is not known; use {', '.join(known)}")
