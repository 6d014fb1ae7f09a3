"""What Python and SQL have in common: a DataFrame, staged as Parquet and checked while it is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ..model.errors import InvalidInput, OpenDataFlowError
from ..model.ids import DatasetId
from ..model.manifest import NewManifest
from ..protocol.read import skipped_inputs
from ..protocol.stage import stage
from ..protocol.validate import validate
from .authors_traceback import note_function
from .chunk import ChunkContext, Inputs
from .producer import ChunkFailed, HeldClaim
from .row_baseline import row_baseline
from .source import SourceContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .declaration import Declaration


class SparkSource(ABC):
    kinds: ClassVar[frozenset[str]]
    is_produced: ClassVar[bool] = True

    @abstractmethod
    def fingerprint(self) -> str | None: ...

    @abstractmethod
    def compute(self, inputs: Inputs, context: ChunkContext) -> object:
        """The rows of one chunk. Authors may return anything, so the result is checked."""

    def columns(self, inputs: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
        """The columns of its rows; None: only a run shows them. `inputs`: those of its inputs, where they are known."""
        return None

    def validate(self, declaration: Declaration) -> None:
        """Every option applies."""
        return

    def make(
        self, declaration: Declaration, context: SourceContext, held: HeldClaim
    ) -> Mapping[DatasetId, NewManifest]:
        from ..warehouse.failures import cause, refuse_dead_session
        from ..warehouse.session import interrupt, tag_thread

        claim, spark, tag = held.claim, context.spark, f"opendataflow-{context.run_id}"
        has_computed = False
        with held.cancellation.calling(partial(interrupt, spark, tag)):
            try:
                tag_thread(spark, tag)
                inputs = Inputs(
                    claim=claim,
                    declaration=declaration,
                    spark=spark,
                    foreign=context.foreign,
                    skipped=skipped_inputs(context.ledger, claim),
                    schemas=context.schemas,
                )
                chunk = ChunkContext(
                    datasetid=declaration.datasetid, dataid=claim.dataid, claim=claim, spark=spark, log=context.log
                )
                computed, has_computed = self.compute(inputs, chunk), True
                written = stage(
                    require_frame(computed, declaration.datasetid),
                    root=context.root,
                    datasetid=declaration.datasetid,
                    dataid=claim.dataid,
                    claim_id=claim.claim_id,
                    checks=declaration.checks,
                    schema=declaration.schema,
                )
                manifest = validate(written, row_baseline(context.ledger, declaration, claim.dataid))
            except Exception as error:
                if not (isinstance(error, OpenDataFlowError) and error.retryable):
                    refuse_dead_session(spark, error, f"chunk {claim.dataid}")
                if has_computed and declaration.function is not None:
                    note_function(error, declaration.function)
                if isinstance(error, OpenDataFlowError):
                    raise
                raise ChunkFailed(cause(error)) from error
        return {declaration.datasetid: manifest}


def require_frame(computed: object, datasetid: DatasetId) -> DataFrame:
    from pyspark.sql import DataFrame

    if isinstance(computed, DataFrame):
        return computed
    kind = "nothing" if computed is None else type(computed).__name__
    next_step = "return the DataFrame that it computes"
    if kind in ("Output", "MaterializeResult", "AssetMaterialization"):
        next_step = "return the DataFrame itself; the framework stores it and writes the materialization event"
    raise InvalidInput(f"the function of DataSet {datasetid} returned {kind}, not a Spark DataFrame; {next_step}")
