"""The registry as values: DataSets with their connections, and Jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .dataset import Dataset
from .errors import InvalidDefinition
from .ids import DataId
from .job import ALL, EQUAL, ChunkMapping, Job, ListedChunks


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetConnection:
    """Where upstream clients and scripts find a DataSet. Its password is stored separately."""

    hostname: str | None = None
    database: str | None = None
    schemaname: str | None = None
    tablename: str | None = None
    username: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetDefinition:
    dataset: Dataset
    connection: DatasetConnection


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    datasets: tuple[DatasetDefinition, ...]
    jobs: tuple[Job, ...]


def mapping_of_kind(kind: str) -> ChunkMapping:
    match kind:
        case "equal":
            return EQUAL
        case "all":
            return ALL
        case "listed":
            return ListedChunks(_only_in_code)
    raise InvalidDefinition(f"mapping {kind!r} is unknown; use equal, listed or all")


def _only_in_code(dataid: DataId) -> Iterable[str]:
    raise InvalidDefinition(f"chunk {dataid}: a function in code lists its input chunks; plan the chunk from that code")
