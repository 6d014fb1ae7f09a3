"""The registry as a value: Jobs, DataSets with their connections, and mappings by their names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .dataset import Dataset
from .errors import InvalidDefinition
from .ids import DataId
from .job import ALL, EQUAL, ChunkMapping, Job, ListedChunks


@dataclass(frozen=True, kw_only=True, slots=True)
class TableAddress:
    """Where an upstream client or a script finds a DataSet. Its password is stored separately, as a secret."""

    hostname: str | None = None
    database: str | None = None
    schemaname: str | None = None
    tablename: str | None = None
    username: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    dataset: Dataset
    connection: TableAddress


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    datasets: tuple[Definition, ...]
    jobs: tuple[Job, ...]


def mapping(kind: str) -> ChunkMapping:
    match kind:
        case "equal":
            return EQUAL
        case "all":
            return ALL
        case "listed":
            return ListedChunks(_only_in_code)
    raise InvalidDefinition(f"{kind!r} is not a mapping; use equal, listed or all")


def _only_in_code(dataid: DataId) -> Iterable[str]:
    raise InvalidDefinition(f"{dataid}: only the code knows which input chunks it needs; plan it from there")
