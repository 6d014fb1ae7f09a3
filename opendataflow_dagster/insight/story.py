"""story: everything about one chunk. Its answers, attempts, runs and versions; from which inputs, when, by whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..ledger import chunks as ledger_chunks
from ..ledger import rows
from ..ledger.chunks import Chunk, Event
from ..ledger.database import Ledger, Transaction
from ..model.errors import UnknownName
from ..model.ids import ChunkKey, ClaimId, DataId, DatasetId, JobId, RunId
from ..model.manifest import Manifest
from ..model.status import Locktype, Status
from ..model.verdict import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """From a claim to what became of it."""

    claim_id: ClaimId | None
    run_id: RunId | None
    started: datetime
    ended: datetime | None
    #: The status that it ended with; None: it still runs.
    outcome: str | None
    reason: str | None
    by: str
    ended_by: str | None
    version: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewerInput:
    """The current version of the chunk was made from `used`; `current` is there now. None: made by someone else."""

    datasetid: DatasetId
    dataid: DataId
    used: int | None
    current: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    key: ChunkKey
    #: The producer's row; several if foreign clients produce it, too; none if it has gone.
    chunks: tuple[Chunk, ...]
    attempts: tuple[Attempt, ...]
    versions: tuple[Manifest, ...]
    #: What makes the current version out of date.
    newer_inputs: tuple[NewerInput, ...]
    verdicts: tuple[Verdict, ...]
    #: Chunks of Jobs that read this one.
    consumers: tuple[tuple[JobId, DataId], ...]
    events: tuple[Event, ...]


def story(ledger: Ledger, key: ChunkKey) -> Story:
    with ledger.transaction() as transaction:
        found = ledger_chunks.find(transaction, [key])
        events = ledger_chunks.history(transaction, key)
        if not found and not events:
            raise UnknownName(f"there is no chunk {key}; see those there are with: odf chunks {key.datasetid} --list")
        versions = [
            rows.manifest(row) for row in transaction.rows("versions", datasetid=key.datasetid, dataid=key.dataid)
        ]
        jobs = dict.fromkeys(
            [*(one.jobid for one in events if one.locktype == Locktype.OUT), *(one.jobid for one in found)]
        )
        verdicts = [one for jobid in jobs for one in ledger_chunks.verdicts(transaction, jobid, key.dataid)]
        return Story(
            key=key,
            chunks=tuple(found),
            attempts=tuple(_attempts(events, versions)),
            versions=tuple(versions),
            newer_inputs=tuple(_newer_inputs(transaction, found)),
            verdicts=tuple(verdicts),
            consumers=tuple(
                (JobId(row["jobid"]), DataId(row["dataid"]))
                for row in transaction.rows("consumers_of", datasetid=key.datasetid, dataid=key.dataid)
            ),
            events=tuple(events),
        )


def previous_version(ledger: Ledger, key: ChunkKey) -> int:
    """The version before the current one."""
    with ledger.transaction() as transaction:
        ledger_chunks.require(transaction, [key])
        current = ledger_chunks.current_manifest(transaction, key)
        versions = [row["version"] for row in transaction.rows("versions", datasetid=key.datasetid, dataid=key.dataid)]
    earlier = [one for one in versions if current is None or one < current.version]
    if not earlier:
        raise UnknownName(f"{key} has no earlier version; see which it has with: odf chunk show")
    return int(earlier[-1])


def _newer_inputs(transaction: Transaction, found: Sequence[Chunk]) -> list[NewerInput]:
    current = [one.manifest_id for one in found if one.manifest_id is not None]
    return [NewerInput(**row) for one in current for row in transaction.rows("newer_inputs", manifest_id=one)]


def _attempts(events: Sequence[Event], versions: Sequence[Manifest]) -> list[Attempt]:
    """A row that becomes RUNNING, or another claim of it, begins an attempt; its next status ends it."""
    version_of = {one.manifest_id: one.version for one in versions}
    found: list[Attempt] = []
    begun: dict[JobId, Event] = {}
    for event in events:
        if event.locktype != Locktype.OUT:
            continue
        if (start := begun.pop(event.jobid, None)) is not None:
            version = version_of.get(event.manifest_id) if event.manifest_id is not None else None
            found.append(_attempt(start, event, version))
        if event.new_status == Status.RUNNING:
            begun[event.jobid] = event
    found += [_attempt(start, None, None) for start in begun.values()]
    return sorted(found, key=lambda one: one.started)


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
