"""One run of the Job of a declared DataSet over chunks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from logging import Logger
from typing import TYPE_CHECKING

from ..ledger.database import Ledger
from ..model.ids import DataId, DatasetId, RunId
from ..model.manifest import NewManifest, made_by
from .cancellation import Cancellation
from .claim_queue import NamedChunks
from .dataset_graph import DatasetGraph, DatasetNode
from .producer import HeldClaim, Producer
from .retry import Retry
from .run_result import ChunkResult, RunResult
from .source import SourceContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class DatasetRun:
    ledger: Ledger
    graph: DatasetGraph
    node: DatasetNode
    run_id: RunId
    start_spark: Callable[[], SparkSession]
    at_once: int
    log: Logger
    #: Called once for each claimed chunk, in the thread that calls `make`.
    on_result: Callable[[ChunkResult], None] = lambda _: None

    def make(self, dataids: Sequence[DataId], result: RunResult) -> None:
        """Claim, make and publish these chunks; `result` gets what became of each."""
        if not dataids:
            return
        declaration, cancellation = self.node.declaration, Cancellation()
        context = SourceContext(
            ledger=self.ledger,
            run_id=self.run_id,
            root=self.node.dataset.location or "",
            foreign=self.graph.foreign,
            schemas=self.graph.schemas,
            start_spark=self.start_spark,
            log=self.log,
        )

        def record(chunk: ChunkResult) -> None:
            result.add(chunk)
            self.on_result(chunk)

        queue = NamedChunks(
            self.ledger,
            declaration.jobid,
            dataids,
            run_id=self.run_id,
            at_once=self.at_once,
            result=result,
            retry=Retry(self.log, cancellation.event),
            log=self.log,
        )

        def make(held: HeldClaim) -> Mapping[DatasetId, NewManifest]:
            # Asked for each chunk, and first: a script may be replaced while the run goes on.
            code = declaration.current_code()
            return made_by(code, declaration.source.make(declaration, context, held))

        producer = Producer(self.ledger, make, record, at_once=self.at_once, log=self.log, cancellation=cancellation)
        producer.run(queue)
