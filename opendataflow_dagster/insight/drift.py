"""drift: where the ledger differs from the code, contradictions, and roots that do not exist."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..ledger import definitions
from ..ledger.database import Ledger
from ..ledger.other_code import OtherCodeRange, other_code
from ..ledger.overview import allow_table_scans
from ..ledger.retry import gives_way
from ..model.definition import Registry
from ..model.errors import InvalidDefinition, UnknownName
from ..model.registry_json import to_named_json
from ..model.status import Status
from ..protocol.transfer import export_registry, import_declared, with_known_code
from ..warehouse.placement import missing
from .status import status

#: Of each DataSet, so many ranges that other code made are listed.
_MOST_RANGES = 20


class DriftProblem(StrEnum):
    NOT_REGISTERED = "NOT_REGISTERED"  # in the code, not in the ledger
    DIFFERS = "DIFFERS"  # in both, but different
    CONTRADICTS = "CONTRADICTS"  # a cycle, two producers, or an unknown DataSet
    OVERLAPS = "OVERLAPS"  # its root is the root of another DataSet, or inside it
    NO_LOCATION = "NO_LOCATION"  # the DataSet has READY chunks, but its root does not exist


@dataclass(frozen=True, kw_only=True, slots=True)
class DriftFinding:
    problem: DriftProblem
    name: str
    detail: str
    #: What to do next.
    step: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DriftReport:
    findings: tuple[DriftFinding, ...]
    #: How many definitions are equal in the code and the ledger.
    equal: int
    #: Only in the ledger: from other code, a script or an upstream client.
    elsewhere: tuple[str, ...]
    #: READY chunks made by code other than the declared one. Not a finding: they stay as they are.
    other_code: tuple[OtherCodeRange, ...]


@gives_way
def find_drift(ledger: Ledger, declared: Registry) -> DriftReport:
    registered = export_registry(ledger)
    in_code = _without_connections(with_known_code(declared, registered))
    in_ledger = _without_connections(registered)
    findings: list[DriftFinding] = []
    for name, definition in in_code.items():
        if name not in in_ledger:
            findings.append(_difference(DriftProblem.NOT_REGISTERED, name, "it is not in the ledger"))
        elif definition != in_ledger[name]:
            findings.append(_difference(DriftProblem.DIFFERS, name, _changed_keys(definition, in_ledger[name])))
    return DriftReport(
        findings=(
            *findings,
            *_contradictions(ledger, declared),
            *_overlapping_roots(ledger, declared),
            *_missing_roots(ledger, declared),
        ),
        equal=sum(in_ledger.get(name) == definition for name, definition in in_code.items()),
        elsewhere=tuple(name for name in in_ledger if name not in in_code),
        other_code=tuple(_other_code(ledger, with_known_code(declared, registered))),
    )


def _other_code(ledger: Ledger, declared: Registry) -> list[OtherCodeRange]:
    codes = {definition.dataset.datasetid: definition.dataset.code_version for definition in declared.datasets}
    with ledger.transaction() as transaction:
        allow_table_scans(transaction)
        return other_code(transaction, codes, _MOST_RANGES)


def _without_connections(registry: Registry) -> dict[str, dict[str, object]]:
    """Code does not declare connections, so they never drift."""
    return {
        name: {key: value for key, value in definition.items() if key != "connection"}
        for name, definition in to_named_json(registry).items()
    }


def _difference(problem: DriftProblem, name: str, detail: str) -> DriftFinding:
    return DriftFinding(problem=problem, name=name, detail=detail, step="register the code with: odf apply")


def _changed_keys(code: dict[str, object], ledger: dict[str, object]) -> str:
    return "; ".join(
        f"{key}: code {code[key]!r}, ledger {ledger.get(key)!r}" for key in code if code[key] != ledger.get(key)
    )


def _contradictions(ledger: Ledger, declared: Registry) -> list[DriftFinding]:
    """Registers the code in a transaction that is rolled back."""
    try:
        with ledger.rehearsing() as rehearsal:
            import_declared(rehearsal, declared)
    except (InvalidDefinition, UnknownName) as error:
        detail, _, step = str(error).rpartition("; ")
        return [DriftFinding(problem=DriftProblem.CONTRADICTS, name="definitions", detail=detail or step, step=step)]
    return []


def _overlapping_roots(ledger: Ledger, declared: Registry) -> list[DriftFinding]:
    """New ones are refused. A ledger of 0.1.0 may have some; its sweep leaves the other DataSet's files alone."""
    names = {definition.dataset.datasetid for definition in declared.datasets}
    with ledger.statement() as statement:
        overlaps = definitions.overlapping_roots(statement)
    return [
        DriftFinding(
            problem=DriftProblem.OVERLAPS,
            name=f"dataset {datasetid}",
            detail=problem,
            step="give one of them another root, and resubmit its chunks",
        )
        for datasetid, other, problem in overlaps
        if names & {datasetid, other}
    ]


def _missing_roots(ledger: Ledger, declared: Registry) -> list[DriftFinding]:
    ready = {dataset.datasetid for dataset in status(ledger, running=0).datasets if dataset.counts.get(Status.READY)}
    datasets = [definition.dataset for definition in declared.datasets if definition.dataset.datasetid in ready]
    return [
        DriftFinding(
            problem=DriftProblem.NO_LOCATION,
            name=f"dataset {dataset.datasetid}",
            detail=f"it has READY chunks below {dataset.location}, but {problem}",
            step="mount it, or correct the root for this environment",
        )
        for dataset in datasets
        if dataset.location is not None and (problem := missing(dataset.location)) is not None
    ]
