"""OpenDataFlow on Dagster: a data-centric, transactional batch-ETL framework.

These are the names for authors of pipelines. They are loaded on first use, so that the command line starts without
Dagster and Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine.chunk import ChunkContext as ChunkContext
    from .engine.declaration import Declaration as Declaration
    from .engine.external_source import external_dataset as external_dataset
    from .engine.python_source import dataset as dataset
    from .engine.sql_source import sql_dataset as sql_dataset
    from .model.check import Check as Check
    from .model.check import Figures as Figures
    from .model.checks import accepted as accepted
    from .model.checks import between as between
    from .model.checks import fresh as fresh
    from .model.checks import holds as holds
    from .model.checks import like_previous as like_previous
    from .model.checks import matches as matches
    from .model.checks import not_null as not_null
    from .model.checks import row_count as row_count
    from .model.checks import unique as unique
    from .model.job import ALL as ALL
    from .model.job import EQUAL as EQUAL
    from .model.job import ListedChunks as ListedChunks
    from .model.job import Policy as Policy
    from .model.job import within as within
    from .model.partitions import daily as daily
    from .model.partitions import hourly as hourly
    from .model.partitions import monthly as monthly
    from .model.partitions import ranges as ranges
    from .model.partitions import static as static
    from .model.partitions import weekly as weekly
    from .orchestrator.definitions import build_definitions as build_definitions
    from .orchestrator.resources import LedgerResource as LedgerResource
    from .orchestrator.resources import SparkResource as SparkResource
    from .scripts.source import script_dataset as script_dataset

_NAMES = {
    "model.check": ("Check", "Figures"),
    "model.checks": (
        *("accepted", "between", "fresh", "holds", "like_previous", "matches", "not_null", "row_count", "unique"),
    ),
    "model.job": ("ALL", "EQUAL", "ListedChunks", "Policy", "within"),
    "model.partitions": ("daily", "hourly", "monthly", "ranges", "static", "weekly"),
    "engine.chunk": ("ChunkContext",),
    "engine.declaration": ("Declaration",),
    "engine.external_source": ("external_dataset",),
    "engine.python_source": ("dataset",),
    "orchestrator.definitions": ("build_definitions",),
    "orchestrator.resources": ("LedgerResource", "SparkResource"),
    "scripts.source": ("script_dataset",),
    "engine.sql_source": ("sql_dataset",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
