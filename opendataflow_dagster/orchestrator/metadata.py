"""The metadata of a chunk in Dagster: its version and figures, the five answers, and its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import dagster as dg

from ..engine.run_result import ChunkResult
from ..model.manifest import CheckResult, Manifest
from ..model.verdict import Answer, InputVersion
from .chunk_event import ChunkEvent, Metadata
from .data_versions import MadeFrom

if TYPE_CHECKING:
    from ..engine.unreported import HowMade

_CHECKS: Final = dg.TableSchema([dg.TableColumn(name) for name in ("check", "result", "severity", "figures")])


def event_of_result(asset_key: dg.AssetKey, chunk: ChunkResult) -> ChunkEvent | None:
    """None: there is nothing to tell, because it was not written, or belongs to another claim by now."""
    claim = chunk.claim
    if chunk.status == "lost" or (manifest := chunk.manifests.get(claim.outputs[0])) is None:
        return None
    told: Metadata | None = None
    if chunk.publication:
        told = {
            **_of_version(chunk.publication.version, manifest.location, manifest.bytes, manifest.row_count),
            **_of_history(claim.inputs, manifest.checks),
            **_of_claim(claim.verdict.answers, claim.attempt, chunk.seconds),
        }
    return ChunkEvent(
        asset_key=asset_key,
        dataid=claim.dataid,
        metadata=told,
        made=MadeFrom(
            version=chunk.publication.version if chunk.publication else None,
            code_version=manifest.code_version,
            inputs=claim.inputs,
        ),
        checks=manifest.checks,
        manifest_id=chunk.publication.manifest_id if chunk.publication else None,
    )


def event_of(
    asset_key: dg.AssetKey, dataid: str, note: str, manifest: Manifest | None = None, how: HowMade | None = None
) -> ChunkEvent:
    """Of a chunk that this run did not make. One without a version was made by a foreign client; a version without a
    claim was announced, or is a rollback."""
    told: Metadata = {"note": dg.MetadataValue.text(note)}
    if how:
        told = {**_of_claim(how.answers, how.attempt, how.seconds), **told}
    if manifest:
        told = {
            **_of_version(manifest.version, manifest.location, manifest.bytes, manifest.row_count),
            **_of_history(manifest.inputs, manifest.checks),
            "published": dg.MetadataValue.timestamp(manifest.published),
            **told,
        }
    if manifest is None:
        return ChunkEvent(asset_key=asset_key, dataid=dataid, metadata=told, made=MadeFrom())
    return ChunkEvent(
        asset_key=asset_key,
        dataid=dataid,
        metadata=told,
        made=MadeFrom(version=manifest.version, code_version=manifest.code_version, inputs=manifest.inputs),
        checks=manifest.checks,
        manifest_id=manifest.manifest_id,
    )


def _of_claim(answers: Iterable[Answer], attempt: int, seconds: float) -> Metadata:
    rows = "".join(f"| {answer.question} | {'yes' if answer.yes else 'no'} | {answer.reason} |\n" for answer in answers)
    return {
        "answers": dg.MetadataValue.md(f"| question | answer | reason |\n|---|---|---|\n{rows}"),
        "attempt": dg.MetadataValue.int(attempt),
        "duration_s": dg.MetadataValue.float(round(seconds, 3)),
    }


def _of_version(version: int | None, location: str, size: int, rows: int | None) -> Metadata:
    row_count = {"dagster/row_count": dg.MetadataValue.int(rows)} if rows is not None else {}
    return {
        **row_count,
        "version": dg.MetadataValue.int(version or 0),
        "bytes": dg.MetadataValue.int(size),
        "location": dg.MetadataValue.path(location),
    }


def _of_history(inputs: Iterable[InputVersion], checks: Sequence[CheckResult]) -> Metadata:
    of_checks: Metadata = {"checks": _table(checks)} if checks else {}
    return {"inputs": dg.MetadataValue.text("\n".join(str(version) for version in inputs) or "no input"), **of_checks}


def _table(checks: Sequence[CheckResult]) -> dg.TableMetadataValue:
    records = [
        dg.TableRecord(
            {"check": check.name, "result": _result(check), "severity": check.severity, "figures": check.detail}
        )
        for check in checks
    ]
    return dg.MetadataValue.table(records, schema=_CHECKS)


def _result(check: CheckResult) -> str:
    return "passed" if check.passed else "warning" if check.is_warning else "FAILED"
