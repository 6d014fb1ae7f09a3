"""validate: judge the checks of a staged version by the figures that were measured during its write."""

from __future__ import annotations

from datetime import UTC, datetime

from ..model.check import Figures
from ..model.manifest import CheckResult, NewManifest, Written


def validate(written: Written, previous_rows: int | None = None) -> NewManifest:
    """The manifest to publish. A failed check does not raise here: its figures are kept, and publish refuses it."""
    now, results = datetime.now(UTC), []
    for check, values in zip(written.checks, written.values, strict=True):
        figures = Figures(rows=written.row_count, values=values, previous_rows=previous_rows, now=now)
        passed, detail = check.judge(figures)
        results.append(CheckResult(name=check.name, passed=bool(passed), detail=detail, severity=check.severity))
    return NewManifest(
        location=written.location,
        files=written.files,
        row_count=written.row_count,
        schema_hash=written.schema_hash,
        content_digest=written.content_digest,
        checks=tuple(results),
    )
