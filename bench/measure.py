"""Processes that do the same work at the same moment, and what their clocks say."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Literal, TypeAlias, assert_never

import plain
import psycopg

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.ids import DatasetId, JobId
from opendataflow_dagster.model.job import Input, Job
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.protocol.claim import claim_many, claim_next
from opendataflow_dagster.protocol.publish import StagedClaim, publish_many
from opendataflow_dagster.protocol.request import request

CLEAN = Job(jobid=JobId("clean"), inputs=(Input(datasetid=DatasetId("raw")),), outputs=(DatasetId("tidy"),))
#: So many folders hold the files of all chunks: a million folders would measure the disk.
FOLDERS = 1000
FILE = File(path="part-0", size=4)

_SPAWN = get_context("spawn")
_PATIENCE_SECONDS = 300

#: path: request, claim by name, publish, as a run does. next: claim_next alone. bare and bare_next: the same rows in
#: plain SQL.
Kind: TypeAlias = Literal["path", "bare", "next", "bare_next"]
#: One call; how many chunks it was for.
Call: TypeAlias = Callable[[], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """For each process: so many calls, each for a batch of chunks, by name from the first on."""

    kind: Kind
    url: str
    root: str
    batch: int
    calls: int
    first: int = 0

    def dataids(self, call: int) -> list[str]:
        begin = self.first + call * self.batch
        return [f"{number:07d}" for number in range(begin, begin + self.batch)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    chunks: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.chunks / self.seconds


def median_rate(rounds: Sequence[Round]) -> float:
    return statistics.median(measured.per_second for measured in rounds)


def median_ratio(ours: Sequence[Round], theirs: Sequence[Round]) -> float:
    """Time for a chunk, ours over theirs, round by round: the machine's noise hits neighbours alike."""
    return statistics.median(bare.per_second / own.per_second for own, bare in zip(ours, theirs, strict=True))


def median_milliseconds(call: Callable[[], object], times: int) -> float:
    return statistics.median(_seconds(call) for _ in range(times)) * 1000


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def folder(root: str, datasetid: str, name: str) -> str:
    return f"{root}/{datasetid}/{int(name) % FOLDERS}"


class Crew:
    """Some processes, each with connections of its own, that begin every work together."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pipes: list[Connection] = []
        self._barrier = _SPAWN.Barrier(size)
        for _ in range(size):
            here, there = _SPAWN.Pipe()
            _SPAWN.Process(target=_member, args=(there, self._barrier), daemon=True).start()
            there.close()  # so that we hear when it dies
            self._pipes.append(here)

    def do(self, works: Sequence[Work]) -> Round:
        """One work for each process."""
        for pipe, work in zip(self._pipes, works, strict=True):
            pipe.send(work)
        told: list[tuple[float, float, int]] = [pipe.recv() for pipe in self._pipes]
        # The clock is the machine's, one for all processes.
        seconds = max(end for _, end, _ in told) - min(begin for begin, _, _ in told)
        chunks = sum(count for _, _, count in told)
        # claim_next gives at most what it is asked for: fewer when another process is claiming the same candidates.
        if works[0].kind != "next" and chunks != sum(work.calls * work.batch for work in works):
            raise RuntimeError(f"{works[0].kind} got {chunks} chunks where more were left; the figures would be wrong")
        return Round(chunks=chunks, seconds=seconds)


def _member(pipe: Connection, barrier: Barrier) -> None:
    hand = _Hand()
    while True:
        try:
            work: Work = pipe.recv()
        except EOFError:
            return
        calls = hand.ready(work)
        barrier.wait(_PATIENCE_SECONDS)
        begin = time.perf_counter()
        chunks = sum(call() for call in calls)
        pipe.send((begin, time.perf_counter(), chunks))


class _Hand:
    """Connects and warms up before the calls, so that they alone are timed. The first call of a work warms up."""

    def __init__(self) -> None:
        self._ledgers: dict[str, Ledger] = {}
        self._bare: dict[str, psycopg.Connection] = {}

    def ready(self, work: Work) -> list[Call]:
        first, *rest = [self._call(work, number) for number in range(work.calls + 1)]
        first()
        return rest

    def _call(self, work: Work, number: int) -> Call:
        match work.kind:
            case "bare":
                folders = {name: folder(work.root, "tidy", name) for name in work.dataids(number)}
                return lambda: plain.make(self._bare_connection(work.url), folders, FILE)
            case "bare_next":
                return lambda: plain.claim_next(self._bare_connection(work.url), work.batch)
            case "next":
                return lambda: len(claim_next(self._ledger(work.url), "clean", work.batch))
            case "path":
                return lambda: _path(self._ledger(work.url), work.root, work.dataids(number))
            case _:
                assert_never(work.kind)

    def _ledger(self, url: str) -> Ledger:
        if url not in self._ledgers:
            self._ledgers[url] = Ledger(url, actor="bench", connections=1)
        return self._ledgers[url]

    def _bare_connection(self, url: str) -> psycopg.Connection:
        if url not in self._bare:
            self._bare[url] = plain.connect(url)
        return self._bare[url]


def _path(ledger: Ledger, root: str, dataids: list[str]) -> int:
    """What a run of Dagster does with a portion of its chunks."""
    request(ledger, CLEAN, dataids, by="bench", requested=datetime.now(UTC))
    claims = claim_many(ledger, "clean", dataids).claims
    staged = [
        StagedClaim(
            claim=claim,
            manifests={
                DatasetId("tidy"): NewManifest(
                    location=folder(root, "tidy", claim.dataid),
                    files=(FILE,),
                    row_count=1000,
                    content_digest=f"claim {claim.claim_id}",
                )
            },
        )
        for claim in claims
    ]
    return len(publish_many(ledger, staged).versions)
