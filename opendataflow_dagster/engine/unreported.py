"""Versions that the orchestrator does not know yet, because a run died or another client made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from ..ledger import chunks, reports
from ..ledger.database import Ledger
from ..ledger.reports import ForeignChunk
from ..ledger.reports import HowMade as HowMade
from ..model.ids import ChunkKey, DatasetId, ManifestId
from ..model.manifest import Manifest

_AT_ONCE = 5000


@dataclass(frozen=True, kw_only=True)
class Position:
    """Up to where everything is reported: versions by number, chunks without a version by time."""

    reported: int = 0
    foreign: tuple[str, str, str] = reports.NO_FOREIGN


@dataclass(frozen=True, kw_only=True)
class Unreported:
    versions: Sequence[Manifest]
    how_made: Mapping[ManifestId, HowMade]
    #: READY chunks without a version.
    foreign: Sequence[ForeignChunk]
    #: Where to go on once all of these are reported.
    next_position: Position


def find_unreported(
    ledger: Ledger, orchestrator: str, datasetids: Sequence[DatasetId], position: Position, grace: timedelta
) -> Unreported:
    """`grace`: a run reports its versions within seconds, so only older ones are missing."""
    with ledger.statement() as statement:
        versions = reports.unreported(statement, orchestrator, after=position.reported, grace=grace, count=_AT_ONCE)
        foreign = reports.unreported_foreign(statement, datasetids, after=position.foreign, grace=grace, count=_AT_ONCE)
        news = [version.manifest for version in versions if version.news and version.manifest.datasetid in datasetids]
        how_made = reports.how_made(statement, [manifest.manifest_id for manifest in news])
    reported = position.reported
    for version in versions:
        if not version.settled:
            break
        reported = version.manifest.manifest_id
    following = replace(position, reported=reported, foreign=foreign[-1].place if foreign else position.foreign)
    return Unreported(versions=news, how_made=how_made, foreign=foreign, next_position=following)


def mark_reported(ledger: Ledger, orchestrator: str, manifest_ids: Sequence[ManifestId]) -> None:
    with ledger.statement() as statement:
        reports.report(statement, orchestrator, manifest_ids)


def ready_versions(ledger: Ledger, keys: Iterable[ChunkKey]) -> dict[ChunkKey, Manifest | None]:
    """Those of the chunks that are READY, with their current version; None: a foreign client made it."""
    with ledger.statement() as statement:
        return chunks.ready_versions(statement, list(keys))


def forget_reported(ledger: Ledger, orchestrator: str, position: Position) -> None:
    """Marks up to the position are no longer needed."""
    with ledger.statement() as statement:
        reports.forget(statement, orchestrator, position.reported)


def how_made(ledger: Ledger, manifest_ids: Sequence[ManifestId]) -> dict[ManifestId, HowMade]:
    with ledger.statement() as statement:
        return reports.how_made(statement, manifest_ids)
