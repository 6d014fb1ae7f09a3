"""The code and data versions of chunks as tags of Dagster's events, so that Dagster shows the same chunks as unsynced.

Dagster compares the newest event of an input partition with the newest one that was there when a chunk was made. So the
event of an input's version must be written before those of the chunks that were made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import dagster as dg

from ..engine.dataset_graph import DatasetGraph, DatasetNode
from ..model.ids import ChunkKey, DatasetId
from ..model.job import AllChunks, Input
from ..model.verdict import InputVersion
from .dagster_internals import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    MOST_COMPARED_PARTITIONS,
    NULL_EVENT_POINTER,
    KnownEvent,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
    known_events,
)
from .partitions import mapping_of
from .run_config import asset_key_of

#: For a DataSet without known code; Dagster compares no code then.
_NO_CODE: Final = "unknown"
#: All events of an input are later. Dagster takes 0 for no pointer, also as the number after the pointer.
_BEFORE_ALL_EVENTS: Final = "-2"


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeFrom:
    """What a chunk was made from. No version: a foreign client made it, or it was not published."""

    version: int | None = None
    #: None: unknown.
    code_version: str | None = None
    inputs: tuple[InputVersion, ...] = ()


class KnownInputs:
    """What Dagster knows of some input chunks."""

    def __init__(self, instance: dg.DagsterInstance, graph: DatasetGraph, inputs: Iterable[InputVersion]) -> None:
        self._events: dict[ChunkKey, KnownEvent] = {}
        for datasetid, pins in _by_dataset(inputs).items():
            node = graph.nodes[datasetid]
            # Dagster compares observations of external assets, and materializations of others.
            found = known_events(instance, asset_key_of(node), {pin.dataid for pin in pins}, observed=node.job is None)
            self._events |= {pin.chunk: found[pin.dataid] for pin in pins if pin.dataid in found}

    def unknown(self, inputs: Iterable[InputVersion]) -> set[ChunkKey]:
        """Those whose version, and every newer one, is missing."""
        return {pin.chunk for pin in inputs if pin.version is not None and self._version(pin) < pin.version}

    def pointer(self, inputs: Sequence[InputVersion]) -> str:
        """For chunks of one DataSet: an event before which all of these versions were known, and no newer one."""
        if any(pin.version is not None and self._version(pin) > pin.version for pin in inputs):
            return _BEFORE_ALL_EVENTS
        known = [self._events[pin.chunk].storage_id for pin in inputs if pin.chunk in self._events]
        return str(max(known)) if known else NULL_EVENT_POINTER

    def _version(self, pin: InputVersion) -> int:
        if (event := self._events.get(pin.chunk)) is None:
            return 0
        if event.data_version is None or not event.data_version.isdecimal():
            return pin.version or 0  # an event of an older release; it is taken for this version's
        return int(event.data_version)


def compared_inputs(graph: DatasetGraph, node: DatasetNode, inputs: Iterable[InputVersion]) -> list[InputVersion]:
    """Those that Dagster can compare. It skips DataSets of which a chunk reads very many chunks."""
    pins = _by_dataset(inputs)
    return [
        pin
        for source in (node.job.inputs if node.job else ())
        if len(of_dataset := pins.get(source.datasetid, [])) < MOST_COMPARED_PARTITIONS
        and _has_same_partitions(graph, node, source)
        for pin in of_dataset
    ]


def data_version_tags(graph: DatasetGraph, node: DatasetNode, made: MadeFrom, known: KnownInputs) -> dict[str, str]:
    if made.version is None:
        return {}
    tags = {DATA_VERSION_TAG: str(made.version), DATA_VERSION_IS_USER_PROVIDED_TAG: "true"}
    code = made.code_version or (_NO_CODE if node.dataset.code_version is None else None)
    if node.job is None or code is None:
        return tags  # Without the tag of the code, Dagster compares the times of events.
    tags[CODE_VERSION_TAG] = code
    read, compared = _by_dataset(made.inputs), _by_dataset(compared_inputs(graph, node, made.inputs))
    for source in node.job.inputs:
        key = asset_key_of(graph.nodes[source.datasetid])
        tags[get_input_data_version_tag(key)] = _digest(read.get(source.datasetid, []))
        tags[get_input_event_pointer_tag(key)] = known.pointer(compared.get(source.datasetid, []))
    return tags


def _has_same_partitions(graph: DatasetGraph, node: DatasetNode, source: Input) -> bool:
    """Where Dagster has no such mapping, it takes all partitions for inputs, those that were not read, too."""
    upstream = graph.nodes[source.datasetid].dataset.partitions
    mapping = mapping_of(source.mapping, node.dataset.partitions, upstream)
    return isinstance(source.mapping, AllChunks) or not isinstance(mapping, dg.AllPartitionMapping)


def _by_dataset(inputs: Iterable[InputVersion]) -> dict[DatasetId, list[InputVersion]]:
    grouped: dict[DatasetId, list[InputVersion]] = {}
    for pin in inputs:
        grouped.setdefault(pin.datasetid, []).append(pin)
    return grouped


def _digest(pins: Sequence[InputVersion]) -> str:
    """Shown in the UI as the version of an input."""
    if len(pins) == 1:
        return str(pins[0].version or "unknown")
    return sha256("\n".join(sorted(map(str, pins))).encode()).hexdigest()
