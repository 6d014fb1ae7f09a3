"""stage: write the rows of a chunk once, into the output's own folder, and measure them in the same pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..model.check import Check, refuse_repeated
from ..model.errors import InvalidInput
from ..model.ids import ClaimId, DataId, DatasetId
from ..model.manifest import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def stage(
    frame: DataFrame,
    *,
    root: str,
    datasetid: DatasetId,
    dataid: DataId,
    claim_id: ClaimId,
    checks: Sequence[Check] = (),
    schema: StructType | None = None,
) -> Written:
    """What was written, for `validate`. Nothing is visible to readers before it is published."""
    if not isinstance(root, str) or not hasattr(frame, "observe"):
        raise InvalidInput(f"chunk {dataid} cannot be staged from {type(frame).__name__}; pass a Spark DataFrame")
    from ..warehouse import parquet  # loads Spark, which not every program that imports the engine needs
    from ..warehouse.location import folder_of

    chunk = f"chunk {dataid} (claim {claim_id})"
    refuse_repeated(checks, chunk)
    return parquet.write(frame, folder_of(root, datasetid, dataid, claim_id), chunk=chunk, checks=checks, schema=schema)
