"""Rows of the ledger as values of the model, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from ..model.claim import Claim
from ..model.ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, ManifestId, RunId
from ..model.manifest import CheckResult, File, Manifest
from ..model.problems import Problem
from ..model.verdict import InputVersion, Verdict


class Chunks(TypedDict):
    """Some chunks, as the arrays that a statement unnests."""

    datasetids: list[str]
    dataids: list[str]


class Fences(TypedDict):
    """The OUT rows of some claims, each with its fencing token."""

    datasetids: list[str]
    jobids: list[str]
    dataids: list[str]
    claim_ids: list[int]


def chunks(keys: Iterable[ChunkKey]) -> Chunks:
    # In one order, so that two statements never wait for each other in a circle.
    ordered = sorted(set(keys))
    return Chunks(datasetids=[key.datasetid for key in ordered], dataids=[key.dataid for key in ordered])


def key(row: Mapping[str, Any]) -> ChunkKey:
    return ChunkKey(datasetid=DatasetId(row["datasetid"]), dataid=DataId(row["dataid"]))


def fences(claims: Sequence[Claim]) -> Fences:
    rows = [(output, claim) for claim in claims for output in claim.outputs]
    return Fences(
        datasetids=[output for output, _ in rows],
        jobids=[claim.jobid for _, claim in rows],
        dataids=[claim.dataid for _, claim in rows],
        claim_ids=[claim.claim_id for _, claim in rows],
    )


def misplaced(verdicts: Sequence[Verdict]) -> dict[str, list[Any]]:
    """Each chunk with what is wrong with the files of its inputs; None: nothing."""
    texts = [
        (verdict.dataid, text)
        for verdict in verdicts
        for text in [problem.facts["text"] for problem in verdict.problems if problem.name == "MISPLACED"] or [None]
    ]
    return {"dataids": [dataid for dataid, _ in texts], "misplaced": [text for _, text in texts]}


def verdict(jobid: JobId, row: Mapping[str, Any]) -> Verdict:
    return Verdict(
        jobid=jobid,
        dataid=DataId(row["dataid"]),
        problems=tuple(Problem.from_json(problem) for problem in row["problems"]),
        inputs=input_versions(row["inputs"]),
        asked=row.get("asked"),
        claim_id=row.get("claim_id"),
    )


def claims(
    jobid: JobId,
    run_id: RunId | None,
    taken: Mapping[str, Any],
    read: Sequence[tuple[tuple[InputVersion, ...], tuple[Manifest, ...]]],
) -> list[Claim]:
    """From the answer of `dataflow.claim`, and what each of its chunks reads."""
    if not taken["claims"]:
        return []
    outputs = tuple(DatasetId(output) for output in taken["outputs"])
    lease, lease_until = timedelta(seconds=taken["lease"]), datetime.fromisoformat(taken["lease_until"])
    return [
        Claim(
            claim_id=ClaimId(claim["claim_id"]),
            jobid=jobid,
            dataid=DataId(claim["dataid"]),
            outputs=outputs,
            attempt=claim["attempt"],
            lease=lease,
            lease_until=lease_until,
            run_id=run_id,
            inputs=inputs,
            manifests=manifests,
        )
        for claim, (inputs, manifests) in zip(taken["claims"], read, strict=True)
    ]


def manifest(row: Mapping[str, Any]) -> Manifest:
    """From a row of data_manifest, or from its JSON."""
    published = row["published"]
    return Manifest(
        manifest_id=ManifestId(row["manifest_id"]),
        datasetid=DatasetId(row["datasetid"]),
        dataid=DataId(row["dataid"]),
        version=row["version"],
        jobid=JobId(row["jobid"]),
        location=row["location"],
        files=tuple(File(path=file["path"], size=file["size"], digest=file.get("digest")) for file in row["files"]),
        bytes=row["bytes"],
        row_count=row["row_count"],
        schema_hash=row["schema_hash"],
        content_digest=row["content_digest"],
        checks=tuple(
            CheckResult(
                name=check["name"],
                passed=check["passed"],
                detail=check.get("detail", ""),
                severity="warn" if check.get("severity") == "warn" else "error",
            )
            for check in row["checks"]
        ),
        inputs=input_versions(row["inputs"]),
        published=datetime.fromisoformat(published) if isinstance(published, str) else published,
        code_version=row["code_version"],
    )


def input_versions(inputs: Iterable[dict[str, Any]]) -> tuple[InputVersion, ...]:
    return tuple(
        InputVersion(
            datasetid=DatasetId(pin["datasetid"]),
            dataid=DataId(pin["dataid"]),
            manifest_id=pin["manifest_id"],
            version=pin["version"],
        )
        for pin in inputs
    )
