"""What the tests of a pipeline need: a local Spark, a throw-away ledger, chunks in any status, readable assertions.

    def test_totals_wait_for_their_orders() -> None:
        with pipeline(orders, daily_totals) as flow:
            flow.put("orders/2024-01-01", "FAILED")
            assert "DATA_NOT_READY" in flow.refusal("daily_totals/2024-01-01")
            flow.make("orders/2024-01-01", "daily_totals/2024-01-01")
            flow.assert_rows("daily_totals/2024-01-01", [("2024-01-01", "a", 2)])

Everything goes through the real verbs, on a real Postgres and a real Spark: what holds here holds in a run of Dagster.
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
from .engine.declaration import Declaration
from .engine.producer import Producer
from .ledger.chunks import current_manifest, find
from .ledger.database import Ledger
from .ledger.throwaway import throwaway_database
from .model.claim import Claim
from .model.errors import InvalidInput, UnknownName
from .model.ids import ChunkKey, ClaimId, JobId, data_id, dataset_id
from .model.job import Policy
from .model.manifest import NewManifest
from .orchestrator.catalogue import Catalogue, Entry, catalogue
from .orchestrator.definitions import register_all
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
    """The session of this process, with settings for little data; the first call starts it."""
    # The second compiler is not worth its work for tests of seconds.
    quick = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    return session(SparkSettings(master="local[2]", conf=quick))


def chunk_context(chunk: str, spark: SparkSession | None = None) -> ChunkContext:
    """What a function with a `context` gets, to call it as what it is: `orders(chunk_context("orders/2024-01-01"))`."""
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
    """These DataSets on a ledger that goes away, with their files in a folder that goes away, whatever they declare.

    `url`: a database of your own, with the schema installed. `root`: a folder of your own, such as pytest's tmp_path.
    """
    with tempfile.TemporaryDirectory(prefix="odf-") as temporary:
        warehouse = str(root or temporary)
        found = catalogue([replace(one, root=None) for one in declarations], warehouse)
        with _database(url) as database, Ledger(database, actor=_BY) as ledger:
            register_all(ledger, found)
            yield Pipeline(ledger=ledger, spark=local_spark(), catalogue=found, root=warehouse)


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Chunks are written as `dataset/dataid`."""

    ledger: Ledger
    spark: SparkSession
    catalogue: Catalogue
    root: str

    # --- what there is

    def given(
        self, chunk: str, rows: DataFrame | Sequence[tuple[Any, ...]], schema: str | StructType | None = None
    ) -> None:
        """The chunk is READY with these rows, whoever makes it; its function and its checks are not asked."""
        key, entry = self._entry(chunk)
        declared = entry.declaration
        if not isinstance(rows, DataFrame):
            wanted = schema or declared.schema
            if wanted is None:
                raise InvalidInput(f"{chunk}: rows without a schema; give it as text, such as 'id long, shop string'")
            rows = self.spark.createDataFrame(list(rows), wanted)
        if entry.job is None:
            made = self._stage(rows, key, ClaimId(next(_claims)), None)
            announce(self.ledger, key.datasetid, [key.dataid], by=_BY, manifests={key.dataid: made})
        else:
            claim = force(self.ledger, entry.job.jobid, key.dataid, by=_BY)
            publish(self.ledger, claim, self._stage(rows, key, claim.claim_id, declared.schema))

    def put(self, chunk: str, status: str, reason: str = "so says the test") -> None:
        """The chunk has this status: PENDING, RUNNING, FAILED, RESUBMIT, HOLD or SKIPPED. For READY see `given`."""
        key, entry = self._entry(chunk)
        if entry.job is None:
            raise InvalidInput(f"{key.datasetid} is made by somebody else; only `given` knows its chunks")
        plan(self.ledger, entry.job, [key.dataid])
        match status:
            case "PENDING":
                pass
            case "HOLD":
                hold(self.ledger, [key], by=_BY, reason=reason)
            case "SKIPPED":
                skip(self.ledger, [key], by=_BY, reason=reason)
            case "RUNNING" | "FAILED" | "RESUBMIT":
                claim = force(self.ledger, entry.job.jobid, key.dataid, by=_BY)
                if status != "RUNNING":
                    fail(self.ledger, claim, reason)
                if status == "RESUBMIT":
                    resubmit(self.ledger, [key], by=_BY, reason=reason)
            case _:
                raise InvalidInput(f"{chunk} cannot be put to {status!r}; use given(...) for READY, or another status")

    # --- what is done

    def make(self, *chunks: str) -> None:
        """Ask for each, in this order, as a person does; all of them must be made."""
        for one in chunks:
            if reason := self._ask_for(one):
                raise AssertionError(f"{one} was not made: {reason}")

    def refusal(self, chunk: str) -> str:
        """Ask for it, and say why it was not made: the code and the answers, or how it failed."""
        if reason := self._ask_for(chunk):
            return reason
        raise AssertionError(f"{chunk} was made, and should not have been")

    # --- what became of it

    def status(self, chunk: str) -> str | None:
        """None: there is no such chunk."""
        with self.ledger.statement() as statement:
            found = find(statement, [_key(chunk)])
        return found[0].status if found else None

    def frame(self, chunk: str) -> DataFrame:
        """The rows that readers get."""
        with self.ledger.statement() as statement:
            found = current_manifest(statement, _key(chunk))
        if found is None:
            raise AssertionError(f"{chunk} has no version; it is {self.status(chunk) or 'not there'}")
        return parquet.read(self.spark, [found])

    def assert_status(self, expected: Mapping[str, str | None]) -> None:
        """`flow.assert_status({"orders/2024-01-01": "READY"})`; None: there is no such chunk."""
        wrong = [
            f"{chunk} is {found or 'not there'}, expected {status or 'not there'}"
            for chunk, status in expected.items()
            if (found := self.status(chunk)) != status
        ]
        if wrong:
            raise AssertionError("; ".join(wrong))

    def assert_rows(self, chunk: str, expected: Sequence[tuple[Any, ...]]) -> None:
        assert_rows(self.frame(chunk), expected)

    def _ask_for(self, chunk: str) -> str | None:
        """Why it was not made."""
        key, entry = self._entry(chunk)
        if entry.job is None:
            raise InvalidInput(f"{key.datasetid} is made by somebody else; say what there is of it: given(...)")
        run_id = begin_run(self.ledger, entry.job.jobid, runner=_BY)
        request(self.ledger, entry.job, [key.dataid], by=_BY, requested=datetime.now(UTC), run_id=run_id)
        producer = Producer(
            ledger=self.ledger,
            engine=lambda: self.spark,
            declaration=entry.declaration,
            root=entry.dataset.location or "",
            foreign=self.catalogue.foreign,
            schemas=self.catalogue.schemas,
            run_id=run_id,
            at_once=1,
            log=_log,
            published=lambda made: None,
        )
        outcome = producer.run([key.dataid])
        end_run(self.ledger, run_id, failed=not outcome.ok)
        return outcome.reasons().get(key.dataid)

    def _stage(self, rows: DataFrame, key: ChunkKey, claim_id: ClaimId, schema: StructType | None) -> NewManifest:
        root = f"{self.root}/{key.datasetid}"
        return validate(stage(rows, root=root, dataid=key.dataid, claim_id=claim_id, schema=schema))

    def _entry(self, chunk: str) -> tuple[ChunkKey, Entry]:
        key = _key(chunk)
        if key.datasetid not in self.catalogue.entries:
            raise UnknownName(
                f"{key.datasetid} is not in this pipeline; it has {', '.join(sorted(self.catalogue.entries))}"
            )
        return key, self.catalogue.entries[key.datasetid]


def assert_rows(frame: DataFrame, expected: Iterable[tuple[Any, ...]]) -> None:
    """The frame has exactly these rows, in any order."""
    found, wanted = Counter(tuple(row) for row in frame.collect()), Counter(expected)
    if found != wanted:
        parts = {"missing": wanted - found, "unexpected": found - wanted}
        said = "".join(f"\n{word}: {row}" for word, some in parts.items() for row in some.elements())
        raise AssertionError(f"the rows ({', '.join(frame.columns)}) differ:{said}")


def _key(chunk: str) -> ChunkKey:
    datasetid, _, dataid = chunk.partition("/")
    return ChunkKey(datasetid=dataset_id(datasetid), dataid=data_id(dataid))


def _database(url: str | None) -> AbstractContextManager[str]:
    return throwaway_database() if url is None else nullcontext(url)
