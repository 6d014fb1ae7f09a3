"""Helpers of the warehouse tests: real writes, and manifests as the ledger returns them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from opendataflow_dagster.model.check import Check
from opendataflow_dagster.model.ids import ClaimId, DataId, DatasetId, JobId, ManifestId
from opendataflow_dagster.model.manifest import Manifest, NewManifest
from opendataflow_dagster.protocol.stage import stage
from opendataflow_dagster.protocol.validate import validate

claims = count(1)


def staged(
    frame: DataFrame,
    root: Path | str,
    dataid: str = "d",
    checks: Sequence[Check] = (),
    schema: StructType | None = None,
    previous_rows: int | None = None,
) -> NewManifest:
    """Staged under a new claim, and validated."""
    claim_id = ClaimId(next(claims))
    written = stage(
        frame,
        root=str(root),
        datasetid=DatasetId("set"),
        dataid=DataId(dataid),
        claim_id=claim_id,
        checks=checks,
        schema=schema,
    )
    return validate(written, previous_rows)


def version(made: NewManifest, dataid: str = "d", version: int = 1, datasetid: str = "set") -> Manifest:
    return Manifest(
        manifest_id=ManifestId(version),
        datasetid=DatasetId(datasetid),
        dataid=DataId(dataid),
        version=version,
        jobid=JobId("job"),
        location=made.location,
        files=made.files,
        bytes=made.bytes,
        row_count=made.row_count,
        schema_hash=made.schema_hash,
        content_digest=made.content_digest,
        checks=made.checks,
        inputs=(),
        published=datetime.now(UTC),
    )


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)
