"""The registry as a JSON document, format 1."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

from .dataset import Dataset
from .definition import Definition, Registry, TableAddress, mapping
from .errors import InvalidDefinition
from .ids import DatasetId, JobId, is_storable
from .job import Input, Job, Policy
from .partitions import partitions_from_json
from .text import brief

FORMAT: Final = 1
_HINT: Final = "compare it with the output of: odf job export"
_Entry = TypeVar("_Entry")

#: The types of JSON, as error messages name them.
_KINDS: Final[dict[type, str]] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_STRING_OR_NULL: Final = (str, type(None))
_OBJECT_OR_NULL: Final = (dict, type(None))
_DATASET: Final[dict[str, tuple[type, ...]]] = {
    **{field.name: _STRING_OR_NULL for field in dataclasses.fields(Dataset)},
    **dict.fromkeys(("datasetid", "skipped_input", "on_new_input", "timezone"), (str,)),
    "repeats": (bool,),
    "fresh_within": (float, int, type(None)),
    "partitions": _OBJECT_OR_NULL,
    "connection": _OBJECT_OR_NULL,
}
_CONNECTION: Final = dict.fromkeys(TableAddress.__slots__, _STRING_OR_NULL)
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
    "retry_on": _STRING_OR_NULL,
}


def registry_to_json(registry: Registry) -> dict[str, object]:
    return {
        "format": FORMAT,
        "datasets": [dataset_to_json(definition) for definition in registry.datasets],
        "jobs": [job_to_json(job) for job in registry.jobs],
    }


def registry_from_json(document: object) -> Registry:
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise InvalidDefinition("the document is not a registry export (format 1); create one with: odf job export")
    _check_types("the document", document, {"format": (int,), "datasets": (list,), "jobs": (list,)})
    return Registry(
        datasets=tuple(_read(entry, "datasetid", _dataset) for entry in document.get("datasets", ())),
        jobs=tuple(_read(entry, "jobid", _job) for entry in document.get("jobs", ())),
    )


def dataset_to_json(definition: Definition) -> dict[str, object]:
    columns = definition.dataset.columns()
    span = definition.dataset.fresh_within
    return {
        **columns,
        "fresh_within": span.total_seconds() if span is not None else None,
        "connection": dataclasses.asdict(definition.connection),
    }


def job_to_json(job: Job) -> dict[str, object]:
    policy = dataclasses.asdict(job.policy)
    return {
        "jobid": job.jobid,
        "inputs": [
            {"datasetid": source.datasetid, "mapping": source.mapping.kind}
            for source in sorted(job.inputs, key=lambda source: source.datasetid)
        ],
        "outputs": sorted(job.outputs),
        "environment": dict(sorted(job.environment.items())),
        "policy": {
            name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in policy.items()
        },
    }


def to_named_json(registry: Registry) -> dict[str, dict[str, object]]:
    """By name: `dataset flights`, `job average`."""
    return {
        **{f"dataset {definition.dataset.datasetid}": dataset_to_json(definition) for definition in registry.datasets},
        **{f"job {job.jobid}": job_to_json(job) for job in registry.jobs},
    }


def _dataset(value: Mapping[str, Any]) -> Definition:
    name = f"DataSet {_name(value, 'datasetid')}"
    _check_types(name, value, _DATASET)
    connection = value.get("connection") or {}
    _check_types(f"the connection of {name}", connection, _CONNECTION)
    given = {key: field for key, field in value.items() if key != "connection"}
    if given.get("partitions") is not None:
        try:
            given["partitions"] = partitions_from_json(given["partitions"])
        except InvalidDefinition as error:
            raise InvalidDefinition(f"{name}: {error}") from error
    if given.get("fresh_within") is not None:
        given["fresh_within"] = timedelta(seconds=given["fresh_within"])
    return Definition(dataset=Dataset(**given), connection=TableAddress(**connection))


def _job(value: Mapping[str, Any]) -> Job:
    name = f"job {_name(value, 'jobid')}"
    _check_types(name, value, _JOB)
    policy = dict(value.get("policy") or {})
    _check_types(f"the policy of {name}", policy, _POLICY)
    environment = dict(value.get("environment") or {})
    _check_types(f"the environment of {name}", environment, dict.fromkeys(environment, _STRING_OR_NULL))
    for span in ("lease", "retry_delay"):
        if span in policy:
            policy[span] = timedelta(seconds=policy[span])
    return Job(
        jobid=JobId(value["jobid"]),
        inputs=tuple(_input(name, _object(entry)) for entry in value.get("inputs", ())),
        outputs=tuple(DatasetId(output) for output in value.get("outputs", ())),
        environment=environment,
        policy=Policy(**policy),
    )


def _input(job: str, value: Mapping[str, Any]) -> Input:
    _check_types(f"an input of {job}", value, {"datasetid": (str,), "mapping": (str,)})
    return Input(datasetid=DatasetId(_name(value, "datasetid")), mapping=mapping(value.get("mapping", "equal")))


def _read(value: object, key: str, read: Callable[[Mapping[str, Any]], _Entry]) -> _Entry:
    entry = _object(value)
    try:
        return read(entry)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDefinition(
            f"{brief(entry.get(key))} has a value of the wrong type ({brief(str(error))[1:-1]}); {_HINT}"
        ) from error


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidDefinition(f"{brief(value)} is not a JSON object; {_HINT}")
    return value


def _name(value: Mapping[str, Any], key: str) -> str:
    if not isinstance(value.get(key), str):
        raise InvalidDefinition(f"an entry has no {key}; add one")
    return str(value[key])


def _check_types(what: str, value: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> None:
    """Every key is known, and every value has the right type and can be stored."""
    if unknown := sorted(set(value) - set(kinds)):
        raise InvalidDefinition(f"{what} has the unknown key {brief(unknown[0])}; use {', '.join(kinds)}")
    for name, field in value.items():
        # The exact type: in Python, True is an int.
        if type(field) not in kinds[name]:
            expected = " or ".join(_KINDS[kind] for kind in kinds[name])
            raise InvalidDefinition(f"{what}: {name} is {brief(field)}, but must be {expected}; {_HINT}")
        if isinstance(field, str) and not is_storable(field):
            raise InvalidDefinition(
                f"{what}: {name} contains a character that cannot be stored, such as NUL; remove it"
            )
