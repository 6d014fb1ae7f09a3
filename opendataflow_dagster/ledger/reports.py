"""What an orchestrator reads: what can run, what is blocked, its open runs, and the versions it has not reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ..model.errors import InvalidInput
from ..model.ids import ChunkKey, DataId, DatasetId, JobId, ManifestId, RunId
from ..model.manifest import Manifest
from ..model.problems import Problem
from ..model.verdict import Answer
from . import rows
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocked:
    """Chunks of a Job that do not run, grouped by the code of the refusal or by a status that needs an operator."""

    jobid: JobId
    word: str
    chunks: int
    example: DataId
    reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenRun:
    run_id: RunId
    external_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Silence:
    seconds: float
    #: The run is still open.
    works: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreportedVersion:
    """A version in the order of publication."""

    manifest: Manifest
    #: Current, and not yet reported to the orchestrator.
    news: bool
    #: Old enough that no transaction with a lower number can still be open.
    settled: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class HowMade:
    """The claim that published a version."""

    answers: tuple[Answer, ...]
    attempt: int
    #: From the claim to the publication.
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignChunk:
    """A chunk that a foreign client made READY, without a version."""

    key: ChunkKey
    jobid: JobId
    modified: datetime

    @property
    def place(self) -> tuple[str, str, str]:
        return self.modified.isoformat(), self.key.datasetid, self.key.dataid


def what_can_run(transaction: Transaction, jobids: Sequence[JobId], count: int) -> dict[JobId, dict[DataId, float]]:
    """The next chunks of each Job, in order, and how many seconds each has been runnable."""
    waited: dict[JobId, dict[DataId, float]] = {}
    for row in transaction.rows("what_can_run", jobids=list(jobids), count=count):
        waited.setdefault(JobId(row["jobid"]), {})[DataId(row["dataid"])] = row["waited"]
    return waited


def what_blocks(transaction: Transaction, jobids: Sequence[JobId]) -> list[Blocked]:
    return [
        Blocked(
            jobid=row["jobid"],
            word=row["word"],
            chunks=row["chunks"],
            example=row["example"],
            reason=row["reason"]
            or "; ".join(str(Problem.from_json(problem)) for problem in row["problems"] or ())
            or None,
        )
        for row in transaction.rows("what_blocks", jobids=list(jobids))
    ]


def open_runs(transaction: Transaction, jobids: Sequence[JobId]) -> list[OpenRun]:
    return [OpenRun(**row) for row in transaction.rows("open_runs", jobids=list(jobids))]


def silence(transaction: Transaction, external_ids: Sequence[str]) -> dict[str, Silence]:
    """Time since the last heartbeat of these runs of an orchestrator; runs that never began here are left out."""
    silences = transaction.rows("silence", external_ids=list(external_ids))
    return {row["external_id"]: Silence(seconds=row["seconds"], works=row["works"]) for row in silences}


def runs_of(transaction: Transaction, external_id: str) -> list[RunId]:
    return [RunId(row["run_id"]) for row in transaction.rows("runs_of", external_id=external_id)]


def unreported(
    transaction: Transaction, orchestrator: str, *, after: int, grace: timedelta, count: int
) -> list[UnreportedVersion]:
    versions = transaction.rows("unreported", orchestrator=orchestrator, after=after, grace=grace, count=count)
    return [
        UnreportedVersion(manifest=rows.manifest(row), news=row["news"], settled=row["settled"]) for row in versions
    ]


def how_made(transaction: Transaction, manifest_ids: Sequence[ManifestId]) -> dict[ManifestId, HowMade]:
    """Leaves out versions that no claim published."""
    versions = transaction.rows("how_made", manifest_ids=list(manifest_ids)) if manifest_ids else []
    return {
        row["manifest_id"]: HowMade(
            answers=rows.verdict(row["jobid"], row).answers, attempt=row["attempt"], seconds=row["seconds"]
        )
        for row in versions
    }


#: A cursor before the first foreign chunk.
NO_FOREIGN: Final = ("-infinity", "", "")


def unreported_foreign(
    transaction: Transaction,
    datasetids: Sequence[DatasetId],
    *,
    after: tuple[str, str, str],
    grace: timedelta,
    count: int,
) -> list[ForeignChunk]:
    """`after` is the `place` of the last chunk read."""
    modified, datasetid, dataid = after
    chunks = transaction.rows(
        "unreported_foreign",
        datasetids=list(datasetids),
        modified=modified,
        datasetid=datasetid,
        dataid=dataid,
        grace=grace,
        count=count,
    )
    return [ForeignChunk(key=rows.key(row), jobid=JobId(row["jobid"]), modified=row["modified"]) for row in chunks]


def report(transaction: Transaction, orchestrator: str, manifest_ids: Sequence[ManifestId]) -> None:
    transaction.run("report", orchestrator=orchestrator, manifest_ids=list(manifest_ids))


def forget(transaction: Transaction, orchestrator: str, upto: int) -> None:
    transaction.run("forget_reported", orchestrator=orchestrator, upto=upto)


def versions_after(transaction: Transaction, after: int, count: int) -> list[tuple[Manifest, bool]]:
    """In the order of publication; each with whether it is current."""
    versions = transaction.rows("versions_after", after=after, count=count)
    return [(rows.manifest(row), row["current"]) for row in versions]


def current_versions(transaction: Transaction, datasetid: DatasetId) -> list[Manifest]:
    """The version of each chunk that readers get."""
    return [rows.manifest(row) for row in transaction.rows("current_versions", datasetid=datasetid)]


def files_are_gone(transaction: Transaction, gone: Sequence[tuple[Manifest, str]]) -> list[ChunkKey]:
    """FAILED, each with its reason. Returns the chunks whose current version it was."""
    failed = transaction.rows(
        "files_are_gone",
        datasetids=[manifest.datasetid for manifest, _ in gone],
        dataids=[manifest.dataid for manifest, _ in gone],
        manifest_ids=[manifest.manifest_id for manifest, _ in gone],
        reasons=[reason for _, reason in gone],
    )
    return [rows.key(row) for row in failed]


def create_orchestrator_schema(transaction: Transaction) -> None:
    """Dagster creates its tables, but not the schema they live in. It listens for events and sets a search_path."""
    if transaction.is_pooled:
        raise InvalidInput(
            "Dagster's own tables need sessions that last, and ODF_DATABASE_URL leads to a connection pooler such as "
            "PgBouncer; name the server itself in ODF_DATABASE_URL"
        )
    transaction.run("make_dagster_schema")
