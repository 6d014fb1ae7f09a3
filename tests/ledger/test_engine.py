"""The engine without Dagster and Spark: a source of one's own, publishing together, leases, retries."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from opendataflow_dagster.engine import leases, publisher
from opendataflow_dagster.engine.cancellation import Cancellation
from opendataflow_dagster.engine.dataset_graph import build_graph, register_graph
from opendataflow_dagster.engine.dataset_run import DatasetRun
from opendataflow_dagster.engine.declaration import Declaration, declare
from opendataflow_dagster.engine.leases import LeaseKeeper
from opendataflow_dagster.engine.producer import ChunkFailed, HeldClaim
from opendataflow_dagster.engine.publisher import Publisher, StagedChunk
from opendataflow_dagster.engine.retry import Retry
from opendataflow_dagster.engine.run_result import ChunkResult, RunResult
from opendataflow_dagster.engine.source import SourceContext
from opendataflow_dagster.insight.story import story
from opendataflow_dagster.ledger.database import Ledger
from opendataflow_dagster.model.claim import Claim
from opendataflow_dagster.model.errors import (
    ClaimLost,
    InvalidDefinition,
    InvalidInput,
    InvalidManifest,
    LedgerUnavailable,
)
from opendataflow_dagster.model.ids import DataId, DatasetId
from opendataflow_dagster.model.job import Policy
from opendataflow_dagster.model.manifest import File, NewManifest
from opendataflow_dagster.protocol.claim import claim, claim_many
from opendataflow_dagster.protocol.job_run import begin_run
from opendataflow_dagster.protocol.publish import Published, StagedClaim, publish_many
from opendataflow_dagster.protocol.register import plan
from opendataflow_dagster.protocol.release import fail
from opendataflow_dagster.protocol.resubmit import resubmit
from opendataflow_dagster.protocol.throttle import throttle
from tests.factories import Flow, job, key

LOG = logging.getLogger(__name__)


@pytest.fixture
def url(emptied_url: str) -> str:
    return emptied_url


# ---- a source of one's own


@dataclass(frozen=True, kw_only=True)
class NoteSource:
    """Writes one small file. This class is all that a new kind of source needs."""

    kinds: ClassVar[frozenset[str]] = frozenset({"note"})
    is_produced: ClassVar[bool] = True

    text: str
    running: list[int] = field(default_factory=list)

    def fingerprint(self) -> str:
        return f"note:{self.text}"

    def validate(self, declaration: Declaration) -> None:
        if declaration.table:
            raise InvalidDefinition(f"DataSet {declaration.datasetid}: a note has no table")

    def make(
        self, declaration: Declaration, context: SourceContext, held: HeldClaim
    ) -> Mapping[DatasetId, NewManifest]:
        self.running.append(threading.active_count())
        if held.claim.dataid == "bad":
            raise ChunkFailed("the note is illegible")
        folder = f"{context.root}/claim-{held.claim.claim_id}"
        return {declaration.datasetid: written(folder, f"{self.text} {held.claim.dataid}")}


def written(folder: str, text: str) -> NewManifest:
    Path(folder).mkdir(parents=True)
    (Path(folder) / "note").write_text(text)
    return NewManifest(location=folder, files=(File(path="note", size=len(text)),), content_digest=text)


def make(flow: Flow, source: NoteSource, dataids: Sequence[str]) -> tuple[RunResult, list[ChunkResult]]:
    graph = build_graph([declare(DatasetId("notes"), source, (), {})], str(flow.root))
    register_graph(flow.ledger, graph)
    ((node, notes),) = graph.produced
    plan(flow.ledger, notes, dataids)
    if flow.psql.execute("select from dataflow.job_control").rowcount == 0:
        throttle(flow.ledger, "notes", None, by="test")
    results: list[ChunkResult] = []
    run = DatasetRun(
        ledger=flow.ledger,
        graph=graph,
        node=node,
        run_id=begin_run(flow.ledger, "notes"),
        start_spark=lambda: pytest.fail("this source needs no Spark"),
        at_once=2,
        log=LOG,
        on_result=results.append,
    )
    result = RunResult()
    run.make([DataId(dataid) for dataid in dataids], result)
    return result, [chunk for chunk in results if chunk.status == "published"]


def test_a_failure_keeps_the_lines_of_the_authors_code_and_no_password(flow: Flow) -> None:
    @dataclass(frozen=True, kw_only=True)
    class BrokenSource(NoteSource):
        def make(
            self, declaration: Declaration, context: SourceContext, held: HeldClaim
        ) -> Mapping[DatasetId, NewManifest]:
            return look_up({}, "postgresql://bob:hunter2@host/db")

    make(flow, BrokenSource(text="hello"), ["a"])

    told = story(flow.ledger, key("notes/a"))
    (attempt,) = told.attempts
    assert attempt.reason == "RuntimeError: no note at postgresql://bob:***@host/db"
    assert attempt.traceback is not None
    lines = attempt.traceback.splitlines()
    frames = [line for line in lines if re.match(r'  File "tests/ledger/test_engine.py", line \d+, in ', line)]
    assert [frame.rpartition(" ")[2] for frame in frames] == ["look_up", "make", "look_up"]
    assert [line for line in lines if line not in frames] == [
        "Traceback (most recent call last):",
        "    return notes[place]",
        "KeyError: 'postgresql://bob:***@host/db'",
        "",
        "That led to:",
        "",
        "Traceback (most recent call last):",
        '    return look_up({}, "postgresql://bob:***@host/db")',
        '    raise RuntimeError(f"no note at {place}") from error',
        "RuntimeError: no note at postgresql://bob:***@host/db",
    ]
    assert flow.psql.execute("select count(*) from dataflow.failure").fetchone() == (1,)


def test_a_claim_that_was_lost_leaves_no_traceback(flow: Flow) -> None:
    flow.register("load: -> raw")
    plan(flow.ledger, job("load: -> raw"), ["1"])
    lost = claim(flow.ledger, "load", "1")
    resubmit(flow.ledger, [key("raw/1")], by="ada")

    with pytest.raises(ClaimLost):
        fail(flow.ledger, lost, "too late", "Traceback of a claim that was lost")

    assert flow.psql.execute("select count(*) from dataflow.failure").fetchone() == (0,)


def look_up(notes: Mapping[str, Mapping[DatasetId, NewManifest]], place: str) -> Mapping[DatasetId, NewManifest]:
    try:
        return notes[place]
    except KeyError as error:
        raise RuntimeError(f"no note at {place}") from error


def test_a_source_defined_in_a_test_makes_chunks_and_a_failed_chunk_fails_alone(flow: Flow) -> None:
    result, published = make(flow, NoteSource(text="hello"), ["a", "bad", "b"])

    assert sorted(result.published) == ["a", "b"]
    assert result.reasons() == {"bad": "FAILED: the note is illegible"}
    assert {chunk.claim.dataid: chunk.manifests[DatasetId("notes")].content_digest for chunk in published} == {
        "a": "hello a",
        "b": "hello b",
    }
    assert [flow.status(f"notes/{dataid}") for dataid in ("a", "bad", "b")] == ["READY", "FAILED", "READY"]


def test_a_source_refuses_an_option_that_it_does_not_support() -> None:
    with pytest.raises(InvalidDefinition, match="a note has no table"):
        declare(DatasetId("notes"), NoteSource(text=""), (), {"table": True})


def test_chunks_above_the_concurrency_limit_wait_for_their_turn(flow: Flow) -> None:
    graph = build_graph([declare(DatasetId("notes"), NoteSource(text=""), (), {})], str(flow.root))
    register_graph(flow.ledger, graph)
    throttle(flow.ledger, "notes", 1, by="test")
    source = NoteSource(text="hello")

    result, _ = make(flow, source, [str(number) for number in range(20)])

    assert result.ok
    assert len(result.published) == len(source.running) == 20


# ---- publishing together


@pytest.fixture
def claims(flow: Flow) -> Sequence[Claim]:
    (load,) = flow.register("load: -> raw")
    flow.plan(load, [str(number) for number in range(6)])
    return claim_many(flow.ledger, "load", [str(number) for number in range(6)]).claims


def staged(flow: Flow, claim: Claim, manifest: NewManifest | None = None) -> StagedChunk:
    return StagedChunk(claim=claim, manifests={DatasetId("raw"): manifest or flow.manifest(claim)}, began=0.0)


def test_chunks_staged_during_a_publish_are_published_together_and_fail_alone(
    flow: Flow, claims: Sequence[Claim], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_flight, go_on, sizes = threading.Event(), threading.Event(), list[int]()

    def slow_publish(ledger: Ledger, made: Sequence[StagedClaim]) -> Published:
        sizes.append(len(made))
        in_flight.set()
        assert go_on.wait(30)
        return publish_many(ledger, made)

    monkeypatch.setattr(publisher, "publish_many", slow_publish)
    flow.type("update dataflow.datastatus set status = 'RESUBMIT' where dataid = '4'")
    outside = NewManifest(location="/elsewhere/raw")
    chunks = [staged(flow, claim, outside if claim.dataid == "5" else None) for claim in claims]
    with Publisher(flow.ledger, Retry(LOG)) as publishing:
        publishing.add(chunks[0])
        assert in_flight.wait(30)
        for chunk in chunks[1:]:
            publishing.add(chunk)
        go_on.set()
        errors = {chunk.claim.dataid: chunk.publication.exception(30) for chunk in chunks}

    assert sizes == [1, 5]
    assert {dataid: type(error) for dataid, error in errors.items() if error} == {"4": ClaimLost, "5": InvalidManifest}
    assert {flow.status(f"raw/{number}") for number in range(4)} == {"READY"}
    assert (flow.status("raw/4"), flow.status("raw/5")) == ("RESUBMIT", "RUNNING")


# ---- leases


def test_claims_without_an_outcome_are_released_and_unstarted_ones_use_no_attempt(
    flow: Flow, claims: Sequence[Claim]
) -> None:
    begun, *unbegun = claims
    keeper = LeaseKeeper(flow.ledger, LOG).__enter__()
    keeper.hold(claims)
    assert keeper.begin(begun)
    keeper.fail_run()
    assert not keeper.begin(unbegun[0])
    keeper.__exit__(InvalidInput, InvalidInput("the disk is full"), None)

    statuses = {flow.status(f"raw/{claim.dataid}") for claim in claims}
    assert statuses == {"RESUBMIT"}
    assert "the disk is full" in (flow.chunk(f"raw/{begun.dataid}").reason or "")
    retries = flow.psql.execute("select dataid, retries from dataflow.datastatus where retries > 0").fetchall()
    assert retries == [(begun.dataid, 1)]


@pytest.fixture
def short_claim(flow: Flow) -> Claim:
    (load,) = flow.register(job("load: -> raw", Policy(lease=timedelta(seconds=0.6))))
    flow.plan(load, ["1"])
    (taken,) = claim_many(flow.ledger, "load", ["1"]).claims
    return taken


def test_a_lease_that_expires_while_the_ledger_is_unavailable_is_lost(
    flow: Flow, short_claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, tries = threading.Event(), list[int]()

    def unavailable(ledger: Ledger, claims: Sequence[Claim]) -> list[Claim]:
        tries.append(len(claims))
        raise LedgerUnavailable("no route to host")

    monkeypatch.setattr(leases, "renew_many", unavailable)
    with LeaseKeeper(flow.ledger, LOG) as keeper:
        keeper.hold([short_claim])
        for _ in range(300):
            if keeper.is_lost(short_claim):
                break
            lost.wait(0.02)
        assert keeper.is_lost(short_claim)
    assert len(tries) > 1, "a failed renewal is retried before the lease expires"


# ---- retries and cancellation


def test_a_retry_ends_with_its_patience_with_a_permanent_error_and_with_the_run() -> None:
    calls: list[int] = []

    def fail_once() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise LedgerUnavailable("starting up")
        return "done"

    def always() -> None:
        raise LedgerUnavailable("gone")

    def permanent() -> None:
        raise InvalidInput("wrong")

    cancellation = Cancellation()
    retry = Retry(LOG, cancellation.event)
    assert retry(fail_once) == "done"
    with pytest.raises(InvalidInput):
        retry(permanent)
    with pytest.raises(LedgerUnavailable):
        retry(always, patience=-1)
    cancellation.cancel()
    with pytest.raises(LedgerUnavailable):
        retry(always)


def test_a_cancelled_run_ends_what_is_in_progress_and_what_starts_later() -> None:
    cancellation, ended = Cancellation(), list[str]()
    with cancellation.calling(lambda: ended.append("in progress")):
        with cancellation.calling(lambda: ended.append("over")):
            pass
        cancellation.cancel()
    with cancellation.calling(lambda: ended.append("later")):
        pass

    assert ended == ["in progress", "later"]
