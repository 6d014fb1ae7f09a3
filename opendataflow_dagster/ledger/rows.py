"""Rows of the ledger as values of the model, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from psycopg.types.json import Jsonb

from ..model.claim import Claim
from ..model.ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, ManifestId, RunId
from ..model.manifest import CheckResult, File, Manifest
from ..model.verdict import Answer, InputVersion, Question, Verdict
from .database import Row

#: The columns of the five answers, in the order of the questions.
ANSWERS = dict(zip(Question, ("ready", "right_data", "placed", "valid", "safe"), strict=True))


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
    # In one order everywhere, so that two statements never wait for each other in a circle.
    ordered = sorted(set(keys))
    return Chunks(datasetids=[key.datasetid for key in ordered], dataids=[key.dataid for key in ordered])


def fences(claims: Sequence[Claim]) -> Fences:
    rows = [(output, one) for one in claims for output in one.outputs]
    return Fences(
        datasetids=[output for output, _ in rows],
        jobids=[one.jobid for _, one in rows],
        dataids=[one.dataid for _, one in rows],
        claim_ids=[one.claim_id for _, one in rows],
    )


def verdict_parameters(verdicts: Sequence[Verdict]) -> dict[str, list[Any]]:
    parameters: dict[str, list[Any]] = {"dataids": [one.dataid for one in verdicts]}
    for place, column in enumerate(ANSWERS.values()):
        answers = [one.answers[place] for one in verdicts]
        parameters[column] = [None if answer.yes else answer.reason for answer in answers]
    parameters["inputs"] = [Jsonb([_input_json(pin) for pin in one.inputs]) for one in verdicts]
    return parameters


def verdict(jobid: JobId, row: Row) -> Verdict:
    return Verdict(
        jobid=jobid,
        dataid=DataId(row["dataid"]),
        answers=answers(row),
        inputs=input_versions(row["inputs"]),
        asked=row.get("asked"),
        claim_id=row.get("claim_id"),
    )


def answers(row: Row) -> tuple[Answer, ...]:
    return tuple(Answer.of(question, row[column]) for question, column in ANSWERS.items())


def claims(jobid: JobId, run_id: RunId | None, taken: dict[str, Any]) -> list[Claim]:
    """From what `dataflow.take` says: lists that have a place for each chunk."""
    outputs = tuple(DatasetId(one) for one in taken["outputs"])
    lease, lease_until = timedelta(seconds=taken["lease"]), datetime.fromisoformat(taken["lease_until"])
    attempts = taken["attempts"] or [1] * len(taken["dataids"])
    chunks = zip(taken["dataids"], taken["claim_ids"], attempts, taken["inputs"], strict=True)
    return [
        Claim(
            claim_id=ClaimId(claim_id),
            jobid=jobid,
            dataid=DataId(dataid),
            outputs=outputs,
            attempt=attempt,
            lease=lease,
            lease_until=lease_until,
            run_id=run_id,
            inputs=input_versions(inputs),
        )
        for dataid, claim_id, attempt, inputs in chunks
    ]


def manifest(row: Row) -> Manifest:
    return Manifest(
        manifest_id=ManifestId(row["manifest_id"]),
        datasetid=DatasetId(row["datasetid"]),
        dataid=DataId(row["dataid"]),
        version=row["version"],
        jobid=JobId(row["jobid"]),
        location=row["location"],
        files=tuple(File(**one) for one in row["files"]),
        bytes=row["bytes"],
        row_count=row["row_count"],
        schema_hash=row["schema_hash"],
        content_digest=row["content_digest"],
        checks=tuple(CheckResult(**one) for one in row["checks"]),
        inputs=input_versions(row["inputs"]),
        published=row["published"],
    )


def input_versions(inputs: Iterable[dict[str, Any]]) -> tuple[InputVersion, ...]:
    return tuple(
        InputVersion(
            datasetid=DatasetId(one["datasetid"]),
            dataid=DataId(one["dataid"]),
            manifest_id=one["manifest_id"],
            version=one["version"],
        )
        for one in inputs
    )


def _input_json(pin: InputVersion) -> dict[str, object]:
    return {"datasetid": pin.datasetid, "dataid": pin.dataid, "manifest_id": pin.manifest_id, "version": pin.version}
