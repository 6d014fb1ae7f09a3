"""What Dagster shows of a chunk: its version, its figures, the five answers, and what it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import dagster as dg

from ..engine.run_result import Made
from ..ledger.reports import HowMade
from ..model.manifest import CheckResult, Manifest
from ..model.verdict import Answer, InputVersion
from .events import Metadata


def of_made(made: Made) -> Metadata:
    manifest = made.manifest
    return {
        **_of_version(made.publication.version, manifest.location, manifest.bytes, manifest.row_count),
        **_of_history(made.claim.inputs, manifest.checks),
        **_of_claim(made.claim.verdict.answers, made.claim.attempt, made.seconds),
    }


def of_manifest(manifest: Manifest, how: HowMade | None, note: str) -> Metadata:
    """Of a version that this run did not make. Without a claim it was announced, or rolled back to."""
    return {
        **(_of_claim(how.answers, how.attempt, how.seconds) if how else {}),
        **_of_version(manifest.version, manifest.location, manifest.bytes, manifest.row_count),
        **_of_history(manifest.inputs, manifest.checks),
        "published": dg.MetadataValue.timestamp(manifest.published),
        "note": dg.MetadataValue.text(note),
    }


def of_foreign(note: str) -> Metadata:
    return {"note": dg.MetadataValue.text(note)}


def _of_claim(answers: Iterable[Answer], attempt: int, seconds: float) -> Metadata:
    return {
        "answers": dg.MetadataValue.md(_answers(answers)),
        "attempt": dg.MetadataValue.int(attempt),
        "duration_s": dg.MetadataValue.float(round(seconds, 3)),
    }


def _of_version(version: int | None, location: str, size: int, rows: int | None) -> Metadata:
    figures = {"dagster/row_count": dg.MetadataValue.int(rows)} if rows is not None else {}
    return {
        **figures,
        "version": dg.MetadataValue.int(version or 0),
        "bytes": dg.MetadataValue.int(size),
        "location": dg.MetadataValue.path(location),
    }


def _of_history(inputs: Iterable[InputVersion], checks: Sequence[CheckResult]) -> Metadata:
    made_from = "\n".join(str(one) for one in inputs) or "no input"
    said = (
        "\n".join(f"{one.name}: {'passed' if one.passed else 'FAILED'} ({one.detail})" for one in checks) or "no checks"
    )
    return {"inputs": dg.MetadataValue.text(made_from), "checks": dg.MetadataValue.text(said)}


def _answers(answers: Iterable[Answer]) -> str:
    rows = "".join(f"| {one.question} | {'yes' if one.yes else 'no'} | {one.reason} |\n" for one in answers)
    return f"| question | answer | reason |\n|---|---|---|\n{rows}"
