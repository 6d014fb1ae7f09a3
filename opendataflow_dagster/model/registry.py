"""The registry as a value: DataSets with their connections, and Jobs."""

from __future__ import annotations

from dataclasses import dataclass

from .definition import Definition
from .job import Job


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    datasets: tuple[Definition, ...]
    jobs: tuple[Job, ...]
