"""The two rules of the graph of Jobs: a DataSet has one producer, and is not made from itself.

The ledger has the same rules as constraints; here they have error messages that say what to change.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter

from .errors import InvalidDefinition
from .ids import DatasetId, JobId


def refuse_two_producers(outputs: Mapping[JobId, Set[DatasetId]]) -> None:
    producers: dict[DatasetId, JobId] = {}
    for jobid, datasetids in sorted(outputs.items()):
        for datasetid in sorted(datasetids):
            if (other := producers.setdefault(datasetid, jobid)) != jobid:
                raise InvalidDefinition(
                    f"DataSet {datasetid} has two producers, {other} and {jobid}; remove it from the outputs of one"
                )


def refuse_cycles(inputs: Mapping[JobId, Set[DatasetId]], outputs: Mapping[JobId, Set[DatasetId]]) -> None:
    sources: dict[DatasetId, set[DatasetId]] = {}
    for jobid, datasetids in outputs.items():
        for datasetid in datasetids:
            sources.setdefault(datasetid, set()).update(inputs.get(jobid, ()))
    try:
        TopologicalSorter(sources).prepare()
    except CycleError as error:
        raise InvalidDefinition(
            f"DataSets depend on themselves: {' <- '.join(error.args[1])}; remove one input from the cycle"
        ) from None
