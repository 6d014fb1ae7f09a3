"""export and import the registry: DataSets and Jobs of code or of another ledger. Repeated imports change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..ledger import definitions
from ..ledger.database import Ledger
from ..ledger.names import unknown_dataset, unknown_job
from ..ledger.retry import gives_way
from ..ledger.settling import settle
from ..model.dataset import Dataset
from ..model.definition import Registry
from ..model.ids import dataset_id, job_id
from ..model.registry_json import to_named_json
from .register import register_in


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryChanges:
    """By name, such as `dataset flights` or `job average`."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]


@gives_way
def export_registry(
    ledger: Ledger, *, datasets: Sequence[str] | None = None, jobs: Sequence[str] | None = None
) -> Registry:
    """All DataSets and Jobs, or those named; a name that is not registered is an error."""
    with ledger.transaction() as transaction:
        registry = definitions.read_registry(transaction, datasets, jobs)
        known_datasets = {definition.dataset.datasetid for definition in registry.datasets}
        if missing := sorted(set(datasets or ()) - known_datasets):
            raise unknown_dataset(transaction, dataset_id(missing[0]))
        if missing := sorted(set(jobs or ()) - {job.jobid for job in registry.jobs}):
            raise unknown_job(transaction, job_id(missing[0]))
    return registry


@gives_way
def import_registry(ledger: Ledger, registry: Registry) -> RegistryChanges:
    """All of it, or nothing if it contradicts itself or the ledger."""
    with ledger.transaction() as transaction:
        changes = preview_import(definitions.read_registry(transaction), registry)
        register_in(transaction, [definition.dataset for definition in registry.datasets], registry.jobs)
        definitions.put_connections(transaction, registry.datasets)
    settle(ledger)
    return changes


@gives_way
def import_declared(ledger: Ledger, declared: Registry) -> RegistryChanges:
    """As `import_registry`, from code. Connections stay as they are in the ledger."""
    return import_registry(ledger, with_stored_connections(ledger, declared))


@gives_way
def with_stored_connections(ledger: Ledger, declared: Registry) -> Registry:
    """Code does not declare how scripts and upstream clients connect; operators do, in the ledger."""
    stored = export_registry(ledger).datasets
    connections = {definition.dataset.datasetid: definition.connection for definition in stored}
    return replace(
        declared,
        datasets=tuple(
            replace(definition, connection=connections.get(definition.dataset.datasetid, definition.connection))
            for definition in declared.datasets
        ),
    )


def with_known_code(wanted: Registry, stored: Registry) -> Registry:
    """A definition without its code, such as an exported one, leaves what the ledger knows of it."""
    known = {definition.dataset.datasetid: definition.dataset.code_version for definition in stored.datasets}
    return _with_code(wanted, lambda dataset: dataset.code_version or known.get(dataset.datasetid))


def without_code(registry: Registry) -> Registry:
    """For another ledger, or for a time when the code is another."""
    return _with_code(registry, lambda _: None)


def _with_code(registry: Registry, code_of: Callable[[Dataset], str | None]) -> Registry:
    datasets = [definition.dataset for definition in registry.datasets]
    coded = [replace(dataset, code_version=code_of(dataset)) for dataset in datasets]
    return replace(
        registry,
        datasets=tuple(
            replace(definition, dataset=dataset) for definition, dataset in zip(registry.datasets, coded, strict=True)
        ),
    )


def preview_import(stored: Registry, wanted: Registry) -> RegistryChanges:
    """What importing `wanted` changes in a ledger that has `stored`."""
    before, after = to_named_json(stored), to_named_json(with_known_code(wanted, stored))
    return RegistryChanges(
        new=tuple(name for name in after if name not in before),
        changed=tuple(name for name in after if name in before and before[name] != after[name]),
        unchanged=tuple(name for name in after if name in before and before[name] == after[name]),
    )
