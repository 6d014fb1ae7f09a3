"""story: everything about one chunk: verdicts, attempts, runs and versions; from which inputs, when, and by whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ..ledger import chunks as ledger_chunks
from ..ledger.chunks import Chunk, Event, NewerInput, consumers_of, newer_inputs, versions_of
from ..ledger.database import Ledger
from ..ledger.definitions import current_codes
from ..ledger.names import unknown_chunks
from ..ledger.retry import gives_way
from ..ledger.staleness import StaleChunk, stale_chunks
from ..model.errors import UnknownName
from ..model.ids import ChunkKey, ClaimId, DataId, JobId, RunId
from ..model.manifest import Manifest
from ..model.status import Locktype, Status
from ..model.verdict import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """A claim, from its start to its end."""

    claim_id: ClaimId | None
    run_id: RunId | None
    started: datetime
    ended: datetime | None
    #: The status it ended with; None: it is running.
    outcome: str | None
    reason: str | None
    by: str
    ended_by: str | None
    version: int | None
    #: The lines of the author's files in which it failed.
    traceback: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    key: ChunkKey
    #: The producer's row. Several if foreign clients also produce the chunk; none if it was deleted.
    chunks: tuple[Chunk, ...]
    attempts: tuple[Attempt, ...]
    versions: tuple[Manifest, ...]
    #: The code of the DataSet now; None: unknown.
    current_code: str | None
    #: What makes the current version stale.
    newer_inputs: tuple[NewerInput, ...]
    #: Why it is stale, since when and by whom; None: it is not, or is being made again.
    stale: StaleChunk | None
    verdicts: tuple[Verdict, ...]
    #: The chunks of Jobs that read this one.
    consumers: tuple[tuple[JobId, DataId], ...]
    events: tuple[Event, ...]


@gives_way
def story(ledger: Ledger, key: ChunkKey) -> Story:
    with ledger.transaction() as transaction:
        chunks = ledger_chunks.find(transaction, [key])
        events = ledger_chunks.history(transaction, key)
        if not chunks and not events:
            raise unknown_chunks(transaction, [key])
        versions = versions_of(transaction, key)
        claim_ids = {event.claim_id for event in events if event.claim_id is not None}
        tracebacks = ledger_chunks.tracebacks(transaction, sorted(claim_ids))
        producers = [event.jobid for event in events if event.locktype == Locktype.OUT]
        producers += [chunk.jobid for chunk in chunks]
        return Story(
            key=key,
            chunks=tuple(chunks),
            attempts=tuple(
                replace(attempt, traceback=tracebacks.get(attempt.claim_id))
                if attempt.claim_id in tracebacks
                else attempt
                for attempt in _attempts(events, versions)
            ),
            versions=tuple(versions),
            current_code=current_codes(transaction, [key.datasetid]).get(key.datasetid),
            newer_inputs=tuple(
                newer_input
                for chunk in chunks
                if chunk.manifest_id is not None
                for newer_input in newer_inputs(transaction, chunk.manifest_id)
            ),
            stale=next(iter(stale_chunks(transaction, [key.datasetid], [key.dataid])), None),
            verdicts=tuple(
                verdict
                for jobid in dict.fromkeys(producers)
                for verdict in ledger_chunks.verdicts(transaction, jobid, key.dataid)
            ),
            consumers=tuple(consumers_of(transaction, key)),
            events=tuple(events),
        )


@gives_way
def previous_version(ledger: Ledger, key: ChunkKey) -> int:
    """The version before the current one."""
    with ledger.transaction() as transaction:
        ledger_chunks.require(transaction, [key])
        current = ledger_chunks.current_manifest(transaction, key)
        versions = versions_of(transaction, key)
    earlier = [version.version for version in versions if current is None or version.version < current.version]
    if not earlier:
        raise UnknownName(f"{key} has no earlier version; list its versions with: odf chunk show")
    return earlier[-1]


def _attempts(events: Sequence[Event], versions: Sequence[Manifest]) -> list[Attempt]:
    """A row that becomes RUNNING, or gets another claim, begins an attempt; its next event ends it."""
    numbers = {version.manifest_id: version.version for version in versions}
    attempts: list[Attempt] = []
    begun: dict[JobId, Event] = {}
    for event in events:
        if event.locktype != Locktype.OUT:
            continue
        if (start := begun.pop(event.jobid, None)) is not None:
            version = numbers.get(event.manifest_id) if event.manifest_id is not None else None
            attempts.append(_attempt(start, event, version))
        if event.new_status == Status.RUNNING:
            begun[event.jobid] = event
    attempts += [_attempt(start, None, None) for start in begun.values()]
    return sorted(attempts, key=lambda attempt: attempt.started)


def _attempt(start: Event, end: Event | None, version: int | None) -> Attempt:
    return Attempt(
        claim_id=start.claim_id,
        run_id=start.run_id,
        started=start.at,
        ended=end.at if end else None,
        outcome=end.new_status or "deleted" if end else None,
        reason=end.reason if end else None,
        by=start.actor or start.login,
        ended_by=(end.actor or end.login) if end else None,
        version=version if end and end.new_status == Status.READY else None,
    )
