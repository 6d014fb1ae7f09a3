"""Processes that do the same work at the same moment, and what their clocks say."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Literal, TypeAlias, assert_never

import psycopg

from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.manifest import NewManifest
from opendataflow_dagster.protocol.claim import claim_next
from opendataflow_dagster.protocol.publish import StagedClaim, publish_many

# What any queue over one table does, and nothing else: the same chunks, and a claim of the next ones. The limit is a
# literal, because a plan for an unknown limit may read the whole table, and that would flatter us.
BARE_CLAIM = """
update bare.chunk c set status = 'RUNNING', claim_id = nextval('bare.claim_id'),
       lease_until = now() + interval '10 minutes', attempt = c.attempt + 1
  from (select datasetid, jobid, dataid from bare.chunk where jobid = 'clean' and status = 'READY'
         order by dataid limit {batch} for update skip locked) n
 where c.datasetid = n.datasetid and c.jobid = n.jobid and c.dataid = n.dataid
returning c.dataid, c.claim_id, c.attempt, c.lease_until
"""

_SPAWN = get_context("spawn")
_PATIENCE_SECONDS = 300

Kind: TypeAlias = Literal["claim", "bare", "publish"]
#: One call of a verb; how many chunks it was for.
Call: TypeAlias = Callable[[], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """For each process: so many calls, each for a batch of chunks."""

    kind: Kind
    url: str
    batch: int
    calls: int
    jobid: str = "clean"


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    chunks: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.chunks / self.seconds


def median_rate(rounds: list[Round]) -> float:
    return statistics.median(one.per_second for one in rounds)


def median_ratio(ours: list[Round], theirs: list[Round]) -> float:
    """Time for a chunk, ours over theirs, round by round: the machine's noise hits neighbours alike."""
    return statistics.median(other.per_second / one.per_second for one, other in zip(ours, theirs, strict=True))


def median_milliseconds(call: Callable[[], object], times: int) -> float:
    return statistics.median(_seconds(call) for _ in range(times)) * 1000


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


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

    def do(self, work: Work) -> Round:
        for pipe in self._pipes:
            pipe.send(work)
        told: list[tuple[float, float, int]] = [pipe.recv() for pipe in self._pipes]
        # The clock is the machine's, one for all processes.
        seconds = max(end for _, end, _ in told) - min(begin for begin, _, _ in told)
        chunks = sum(count for _, _, count in told)
        if chunks != self.size * work.calls * work.batch:
            raise RuntimeError(f"{work.kind} got {chunks} chunks where more were left; the figures would be wrong")
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
    """Connects, plans and claims ahead what the calls need, so that they alone are timed."""

    def __init__(self) -> None:
        self._ledgers: dict[str, Ledger] = {}
        self._bare: dict[str, psycopg.Connection] = {}
        self._warm: set[tuple[str, str, str, int]] = set()

    def ready(self, work: Work) -> list[Call]:
        key = (work.kind, work.url, work.jobid, work.batch)
        if key not in self._warm:
            self._warm.add(key)
            self._calls(work, 1)[0]()
        return self._calls(work, work.calls)

    def _calls(self, work: Work, count: int) -> list[Call]:
        match work.kind:
            case "bare":
                bare = self._bare_connection(work.url)
                statement = BARE_CLAIM.format(batch=work.batch).encode()
                return [lambda: len(bare.execute(statement, prepare=True).fetchall())] * count
            case "claim":
                ledger = self._ledger(work.url)
                return [lambda: len(claim_next(ledger, work.jobid, work.batch))] * count
            case "publish":
                ledger = self._ledger(work.url)
                return [_publication(ledger, claim_next(ledger, work.jobid, work.batch)) for _ in range(count)]
            case _:
                assert_never(work.kind)

    def _ledger(self, url: str) -> Ledger:
        if url not in self._ledgers:
            self._ledgers[url] = Ledger(url, actor="bench", connections=1)
        return self._ledgers[url]

    def _bare_connection(self, url: str) -> psycopg.Connection:
        if url not in self._bare:
            self._bare[url] = psycopg.connect(url, autocommit=True)
            # At its best: a small table would be read from end to end.
            self._bare[url].execute("set enable_seqscan = off")
        return self._bare[url]


def _publication(ledger: Ledger, claims: list[Claim]) -> Call:
    made = [StagedClaim(claim=one, manifests=dict.fromkeys(one.outputs, _manifest(one))) for one in claims]
    return lambda: len(publish_many(ledger, made).versions)


def _manifest(claim: Claim) -> NewManifest:
    """Without files: the ledger is measured, not the disk."""
    return NewManifest(
        location=f"/warehouse/{claim.outputs[0]}/{claim.dataid}/{claim.claim_id}",
        row_count=1000,
        content_digest=f"{claim.outputs[0]} of claim {claim.claim_id}",
    )
