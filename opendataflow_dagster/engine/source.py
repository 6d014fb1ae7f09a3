"""A source: how the chunks of a DataSet come to be. A new kind of source is one class with these members.

python_source.py, sql_source.py and external_source.py are here; scripts/source.py runs programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from logging import Logger
from typing import TYPE_CHECKING, Protocol

from ..ledger.database import Ledger
from ..model.ids import DatasetId, RunId
from ..model.manifest import NewManifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from .declaration import Declaration, ReadForeign
    from .producer import HeldClaim


@dataclass(frozen=True, kw_only=True)
class SourceContext:
    """What a source may use to make the chunks of one run."""

    ledger: Ledger
    run_id: RunId
    #: The root of the DataSet that is made.
    root: str
    #: How to read inputs that have no manifest, and the declared schemas of all DataSets.
    foreign: Mapping[DatasetId, ReadForeign]
    schemas: Mapping[DatasetId, StructType]
    start_spark: Callable[[], SparkSession]
    log: Logger

    @cached_property
    def spark(self) -> SparkSession:
        """The session of this process. Starting one takes seconds, so only a source that needs it asks for it."""
        return self.start_spark()


class Source(Protocol):
    @property
    def kinds(self) -> frozenset[str]:
        """Labels of the asset in Dagster's UI."""
        ...

    @property
    def is_produced(self) -> bool:
        """False: another system makes the chunks and announces them."""
        ...

    def fingerprint(self) -> str | None:
        """Of the code that the next chunk is made by; None: unknown. See fingerprint.py."""
        ...

    def validate(self, declaration: Declaration) -> None:
        """Raise InvalidDefinition for an option that this source does not support."""
        ...

    def make(
        self, declaration: Declaration, context: SourceContext, held: HeldClaim
    ) -> Mapping[DatasetId, NewManifest]:
        """Write a new version of the claimed chunk, and describe it.

        Raise ChunkFailed or any other error to fail the chunk, ClaimLost when the claim was lost, and a retryable error
        when the whole run cannot go on.
        """
        ...
