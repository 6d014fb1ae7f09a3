"""For the tests of a pipeline: a local Spark, a temporary ledger, chunks in any status, readable assertions.

    def test_totals_wait_for_their_orders() -> None:
        with pipeline(orders, daily_totals) as flow:
            flow.put("orders/2024-01-01", "FAILED")
            assert "DATA_NOT_READY" in flow.refusal("daily_totals/2024-01-01")
            flow.make("orders/2024-01-01", "daily_totals/2024-01-01")
            flow.assert_rows("daily_totals/2024-01-01", [("2024-01-01", "a", 2)])

Everything goes through the real engine, Postgres and Spark, so what holds here holds in a Dagster run.
The functions themselves need none of it: `daily_totals(frame)`, `orders(chunk_context("orders/2024-01-01"))`.
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from .engine.chunk import ChunkContext
from .engine.dataset_graph import DatasetGraph, DatasetNode, build_graph, register_graph
from .engine.dataset_run import DatasetRun
from .engine.declaration import Declaration
from .engine.run_result import RunResult
from .ledger.chunks import current_manifest, find
from .ledger.database import Ledger
from .ledger.throwaway import throwaway_database
from .model.claim import Claim
from .model.errors import InvalidInput, UnknownName
from .model.ids import ChunkKey, ClaimId, JobId, data_id, dataset_id
from .model.job import Policy
from .model.manifest import NewManifest
from .protocol.announce import announce
from .protocol.force import force
from .protocol.hold import hold, skip
from .protocol.job_run import begin_run, end_run
from .protocol.publish import publish
from .protocol.register import plan
from .protocol.release import fail
from .protocol.request import request
from .protocol.resubmit import resubmit
from .protocol.stage import stage
from .protocol.validate import validate
from .warehouse import parquet
from .warehouse.session import SparkSettings, session

_BY = "test"
_log = logging.getLogger(__name__)
_claims = count(1)


def local_spark() -> SparkSession:
    """The Spark session of this process, tuned for little data. The first call starts it."""
    # The second JIT compiler does not pay off in tests of seconds.
    quick = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    return session(SparkSettings(master="local[2]", conf=quick))


def chunk_context(chunk: str, spark: SparkSession | None = None) -> ChunkContext:
    """The `context` of a function, to call it directly: `orders(chunk_context("orders/2024-01-01"))`."""
    key = _key(chunk)
    claim = Claim(
        claim_id=ClaimId(next(_claims)),
        jobid=JobId(key.datasetid),
        dataid=key.dataid,
        outputs=(key.datasetid,),
        attempt=1,
        lease=Policy().lease,
        lease_until=datetime.now(UTC) + Policy().lease,
        run_id=None,
        inputs=(),
    )
    return ChunkContext(datasetid=key.datasetid, dataid=key.dataid, claim=claim, spark=spark or local_spark(), log=_log)


@contextmanager
def pipeline(*declarations: Declaration, url: str | None = None, root: Path | None = None) -> Iterator[Pipeline]:
    """These DataSets on a temporary ledger, with their files in a temporary folder whatever root they declare.

    `url` is a database of your own, with the schema installed. `root` is a folder of your own, such as tmp_path.
    """
    with tempfile.TemporaryDirectory(prefix="odf-") as temporary:
        warehouse = str(root or temporary)
        graph = build_graph([replace(declaration, root=None) for declaration in declarations], warehouse)
        with _database(url) as database, Ledger(database, actor=_BY) as ledger:
            register_graph(ledger, graph)
            yield Pipeline(ledger=ledger, spark=local_spark(), graph=graph, root=warehouse)


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Chunks are named `dataset/dataid`."""

    ledger: Ledger
    spark: SparkSession
    graph: DatasetGraph
    root: str

    # --- arrange

    def given(
        self, chunk: str, rows: DataFrame | Sequence[tuple[Any, ...]], schema: str | StructType | None = None
    ) -> None:
        """Make the chunk READY with these rows, without its function and its checks."""
        key, node = self._node(chunk)
        declared = node.declaration
        if not isinstance(rows, DataFrame):
            row_schema = schema or declared.schema
            if row_schema is None:
                raise InvalidInput(f"{chunk}: rows without a schema; give it as text, such as 'id long, shop string'")
            rows = self.spark.createDataFrame(list(rows), row_schema)
        if node.job is None:
            manifest = self._stage(rows, key, ClaimId(next(_claims)), None)
            announce(self.ledger, key.datasetid, [key.dataid], by=_BY, manifests={key.dataid: manifest})
        else:
            claim = force(self.ledger, node.job.jobid, key.dataid, by=_BY)
            publish(self.ledger, claim, self._stage(rows, key, claim.claim_id, declared.schema))

    def put(self, chunk: str, status: str, reason: str = "set by the test") -> None:
        """Set the status of a chunk: PENDING, RUNNING, FAILED, RESUBMIT, HOLD or SKIPPED. For READY use `given`."""
        key, node = self._node(chunk)
        if node.job is None:
            raise InvalidInput(f"{chunk}: {key.datasetid} is external, so its status cannot be set; use given(...)")
        plan(self.ledger, node.job, [key.dataid])
        match status:
            case "PENDING":
                pass
            case "HOLD":
                hold(self.ledger, [key], by=_BY, reason=reason)
            case "SKIPPED":
                skip(self.ledger, [key], by=_BY, reason=reason)
            case "RUNNING" | "FAILED" | "RESUBMIT":
                claim = force(self.ledger, node.job.jobid, key.dataid, by=_BY)
                if status != "RUNNING":
                    fail(self.ledger, claim, reason)
                if status == "RESUBMIT":
                    resubmit(self.ledger, [key], by=_BY, reason=reason)
            case _:
                raise InvalidInput(f"{chunk}: the status cannot be set to {status!r}; use given(...) for READY")

    # --- act

    def make(self, *chunks: str) -> None:
        """Request each chunk, in this order, as a person does. All of them must be made."""
        for chunk in chunks:
            if reason := self._request(chunk):
                raise AssertionError(f"{chunk} was not made: {reason}")

    def refusal(self, chunk: str) -> str:
        """Request a chunk, and return why it was not made: the code and the answers, or how it failed."""
        if reason := self._request(chunk):
            return reason
        raise AssertionError(f"{chunk} was made, but a refusal was expected")

    # --- assert

    def status(self, chunk: str) -> str | None:
        """None: there is no such chunk."""
        with self.ledger.statement() as statement:
            rows = find(statement, [_key(chunk)])
        return rows[0].status if rows else None

    def frame(self, chunk: str) -> DataFrame:
        """The rows that readers get."""
        with self.ledger.statement() as statement:
            manifest = current_manifest(statement, _key(chunk))
        if manifest is None:
            raise AssertionError(f"{chunk} has no version; its status is {self.status(chunk)}")
        return parquet.read(self.spark, [manifest])

    def assert_status(self, expected: Mapping[str, str | None]) -> None:
        """`flow.assert_status({"orders/2024-01-01": "READY"})`; None: there is no such chunk."""
        wrong = [
            f"{chunk} is {actual}, expected {status}"
            for chunk, status in expected.items()
            if (actual := self.status(chunk)) != status
        ]
        if wrong:
            raise AssertionError("; ".join(wrong))

    def assert_rows(self, chunk: str, expected: Sequence[tuple[Any, ...]]) -> None:
        assert_rows(self.frame(chunk), expected)

    def _request(self, chunk: str) -> str | None:
        """Why it was not made."""
        key, node = self._node(chunk)
        if node.job is None:
            raise InvalidInput(f"{chunk}: {key.datasetid} is external, so it cannot be made here; use given(...)")
        run_id = begin_run(self.ledger, node.job.jobid, runner=_BY)
        request(self.ledger, node.job, [key.dataid], by=_BY, requested=datetime.now(UTC), run_id=run_id)
        run = DatasetRun(
            ledger=self.ledger,
            graph=self.graph,
            node=node,
            run_id=run_id,
            start_spark=lambda: self.spark,
            at_once=1,
            log=_log,
        )
        result = RunResult()
        run.make([key.dataid], result)
        end_run(self.ledger, run_id, failed=not result.ok)
        return result.reasons().get(key.dataid)

    def _stage(self, rows: DataFrame, key: ChunkKey, claim_id: ClaimId, schema: StructType | None) -> NewManifest:
        root = f"{self.root}/{key.datasetid}"
        written = stage(rows, root=root, datasetid=key.datasetid, dataid=key.dataid, claim_id=claim_id, schema=schema)
        return validate(written)

    def _node(self, chunk: str) -> tuple[ChunkKey, DatasetNode]:
        key = _key(chunk)
        if key.datasetid not in self.graph.nodes:
            raise UnknownName(f"{key.datasetid} is not in this pipeline; it has {', '.join(sorted(self.graph.nodes))}")
        return key, self.graph.nodes[key.datasetid]


def assert_rows(frame: DataFrame, expected: Iterable[tuple[Any, ...]]) -> None:
    """The frame has exactly these rows, in any order."""
    actual, wanted = Counter(tuple(row) for row in frame.collect()), Counter(expected)
    if actual != wanted:
        parts = {"missing": wanted - actual, "unexpected": actual - wanted}
        differences = "".join(f"\n{kind}: {row}" for kind, rows in parts.items() for row in rows.elements())
        raise AssertionError(f"the rows ({', '.join(frame.columns)}) differ:{differences}")


def _key(chunk: str) -> ChunkKey:
    datasetid, _, dataid = chunk.partition("/")
    return ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid))


def _database(url: str | None) -> AbstractContextManager[str]:
    return throwaway_database() if url is None else nullcontext(url)
