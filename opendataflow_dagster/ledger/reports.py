"""What an orchestrator must be told of chunks, and what it asks: what can run, what blocks, which runs are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ..model.ids import ChunkKey, DataId, DatasetId, JobId, ManifestId, RunId
from ..model.manifest import Manifest
from ..model.problems import Problem
from ..model.verdict import Answer
from . import rows
from .database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocked:
    """Chunks of a Job that do not run, and why: the code of a no, or a status that waits for a person."""

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
    #: It has begun something that it has not ended.
    works: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A version in the order of publication."""

    manifest: Manifest
    #: Current, and the orchestrator does not know it.
    news: bool
    #: Old enough that no transaction with an earlier number can still be open.
    settled: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class HowMade:
    """The claim that published a version."""

    answers: tuple[Answer, ...]
    attempt: int
    #: From the claim to the publication.
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreign:
    """A chunk that somebody made READY without a version."""

    key: ChunkKey
    jobid: JobId
    modified: datetime

    @property
    def place(self) -> tuple[str, str, str]:
        return self.modified.isoformat(), self.key.datasetid, self.key.dataid


def what_can_run(transaction: Transaction, jobids: Sequence[JobId], count: int) -> dict[JobId, dict[DataId, float]]:
    """The next chunks of each Job, in order, and for how many seconds each has been able to run."""
    found: dict[JobId, dict[DataId, float]] = {}
    for row in transaction.rows("what_can_run", jobids=list(jobids), count=count):
        found.setdefault(JobId(row["jobid"]), {})[DataId(row["dataid"])] = row["waited"]
    return found


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
    """How long nothing was heard of these runs of an orchestrator, as far as they have begun here."""
    found = transaction.rows("silence", external_ids=list(external_ids))
    return {row["external_id"]: Silence(seconds=row["seconds"], works=row["works"]) for row in found}


def runs_of(transaction: Transaction, external_id: str) -> list[RunId]:
    return [RunId(row["run_id"]) for row in transaction.rows("runs_of", external_id=external_id)]


def unreported(
    transaction: Transaction, orchestrator: str, *, after: int, grace: timedelta, count: int
) -> list[Published]:
    found = transaction.rows("unreported", orchestrator=orchestrator, after=after, grace=grace, count=count)
    return [Published(manifest=rows.manifest(row), news=row["news"], settled=row["settled"]) for row in found]


def how_made(transaction: Transaction, manifest_ids: Sequence[ManifestId]) -> dict[ManifestId, HowMade]:
    """Those of the versions that a claim has published."""
    found = transaction.rows("how_made", manifest_ids=list(manifest_ids)) if manifest_ids else []
    return {
        row["manifest_id"]: HowMade(
            answers=rows.verdict(row["jobid"], row).answers, attempt=row["attempt"], seconds=row["seconds"]
        )
        for row in found
    }


#: Before all others.
NO_FOREIGN: Final = ("-infinity", "", "")


def unreported_foreign(
    transaction: Transaction,
    datasetids: Sequence[DatasetId],
    *,
    after: tuple[str, str, str],
    grace: timedelta,
    count: int,
) -> list[Foreign]:
    """After a place: the time, the DataSet and the dataid of the last one."""
    modified, datasetid, dataid = after
    found = transaction.rows(
        "unreported_foreign",
        datasetids=list(datasetids),
        modified=modified,
        datasetid=datasetid,
        dataid=dataid,
        grace=grace,
        count=count,
    )
    return [
        Foreign(
            key=ChunkKey(datasetid=DatasetId(row["datasetid"]), dataid=DataId(row["dataid"])),
            jobid=JobId(row["jobid"]),
            modified=row["modified"],
        )
        for row in found
    ]


def report(transaction: Transaction, orchestrator: str, manifest_ids: Sequence[ManifestId]) -> None:
    transaction.run("report", orchestrator=orchestrator, manifest_ids=list(manifest_ids))


def forget(transaction: Transaction, orchestrator: str, upto: int) -> None:
    transaction.run("forget_reported", orchestrator=orchestrator, upto=upto)


def versions_after(transaction: Transaction, after: int, count: int) -> list[tuple[Manifest, bool]]:
    """In the order of publication; whether it is what readers get."""
    found = transaction.rows("versions_after", after=after, count=count)
    return [(rows.manifest(row), row["current"]) for row in found]


def current_versions(transaction: Transaction, datasetid: DatasetId) -> list[Manifest]:
    """What readers of the DataSet get, chunk by chunk."""
    return [rows.manifest(row) for row in transaction.rows("current_versions", datasetid=datasetid)]


def files_are_gone(transaction: Transaction, gone: Sequence[tuple[Manifest, str]]) -> list[ChunkKey]:
    found = transaction.rows(
        "files_are_gone",
        datasetids=[one.datasetid for one, _ in gone],
        dataids=[one.dataid for one, _ in gone],
        manifest_ids=[one.manifest_id for one, _ in gone],
        reasons=[reason for _, reason in gone],
    )
    return [ChunkKey(datasetid=row["datasetid"], dataid=row["dataid"]) for row in found]
