"""compare: does the ledger say what the code says? Drift, contradictions, and roots that are not there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ..ledger.database import Ledger
from ..model.errors import InvalidDefinition, UnknownName
from ..model.status import Status
from ..protocol.transfer import Imported, Registry, dataset_json, job_json, put, registry
from ..warehouse.roots import missing
from .status import status


class Problem(StrEnum):
    NOT_REGISTERED = "NOT_REGISTERED"  # code has it, the ledger does not
    DIFFERS = "DIFFERS"  # both have it, not alike
    CONTRADICTS = "CONTRADICTS"  # with what else is registered: a cycle, two producers, an unknown DataSet
    NO_LOCATION = "NO_LOCATION"  # there are READY chunks, but the root is not there


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    problem: Problem
    name: str
    detail: str
    step: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    findings: tuple[Finding, ...]
    #: What code and ledger agree on, by count.
    equal: int
    #: The ledger has it and this code does not: other code, a script, an upstream client.
    elsewhere: tuple[str, ...]


def compare(ledger: Ledger, declared: Registry) -> Compared:
    """Changes nothing."""
    known = registry(ledger)
    ours, theirs = _named(declared), _named(known)
    findings: list[Finding] = []
    for name, value in ours.items():
        if name not in theirs:
            findings.append(_drift(Problem.NOT_REGISTERED, name, "the ledger does not know it"))
        elif value != theirs[name]:
            findings.append(_drift(Problem.DIFFERS, name, _difference(value, theirs[name])))
    findings += _contradictions(ledger, declared)
    findings += _locations(ledger, declared)
    return Compared(
        findings=tuple(findings),
        equal=sum(theirs.get(name) == value for name, value in ours.items()),
        elsewhere=tuple(name for name in theirs if name not in ours),
    )


def apply(ledger: Ledger, declared: Registry) -> Imported:
    """The ledger becomes what the code says; how scripts and upstream clients connect stays."""
    return put(ledger, with_connections(ledger, declared))


def with_connections(ledger: Ledger, declared: Registry) -> Registry:
    """Code does not say how scripts and upstream clients connect; that is as the ledger has it."""
    connections = {one.dataset.datasetid: one.connection for one in registry(ledger).datasets}
    datasets = tuple(
        replace(one, connection=connections.get(one.dataset.datasetid, one.connection)) for one in declared.datasets
    )
    return replace(declared, datasets=datasets)


def _named(known: Registry) -> dict[str, dict[str, object]]:
    datasets = {f"dataset {one.dataset.datasetid}": dataset_json(one) for one in known.datasets}
    for value in datasets.values():
        del value["connection"]
    return {**datasets, **{f"job {one.jobid}": job_json(one) for one in known.jobs}}


def _drift(problem: Problem, name: str, detail: str) -> Finding:
    return Finding(problem=problem, name=name, detail=detail, step="odf apply makes the ledger equal to the code")


def _difference(code: dict[str, object], ledger: dict[str, object]) -> str:
    parts = [f"{key}: code {code[key]!r}, ledger {ledger.get(key)!r}" for key in code if code[key] != ledger.get(key)]
    return "; ".join(parts)


def _contradictions(ledger: Ledger, declared: Registry) -> list[Finding]:
    """Registering is tried, and rolled back."""
    try:
        with ledger.rehearsing() as rehearsal:
            apply(rehearsal, declared)
    except (InvalidDefinition, UnknownName) as error:
        said, _, step = str(error).rpartition("; ")
        return [Finding(problem=Problem.CONTRADICTS, name="the definitions", detail=said or step, step=step)]
    return []


def _locations(ledger: Ledger, declared: Registry) -> list[Finding]:
    ready = {one.datasetid for one in status(ledger, running=0).datasets if one.counts.get(Status.READY)}
    found = [
        (one.dataset.datasetid, one.dataset.location, wrong)
        for one in declared.datasets
        if one.dataset.location is not None
        and one.dataset.datasetid in ready
        and (wrong := missing(one.dataset.location)) is not None
    ]
    return [
        Finding(
            problem=Problem.NO_LOCATION,
            name=f"dataset {datasetid}",
            detail=f"it has READY chunks below {location}, but {wrong}",
            step="mount it, or correct the root in this environment",
        )
        for datasetid, location, wrong in found
    ]
