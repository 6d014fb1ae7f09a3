"""request: a person or an orchestrator asks for chunks. What that means for each is settled before anything is claimed.

A person's request resubmits FAILED chunks, and READY ones that are older than it. A chunk that became READY after the
request was made satisfies it. A sensor's or a schedule's request resubmits nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ..ledger import registry
from ..ledger.database import Ledger
from ..ledger.retry import retry_conflicts
from ..model.ids import DataId, RunId, data_id
from ..model.job import Job
from ..model.manifest import Manifest


@dataclass(frozen=True, kw_only=True, slots=True)
class Requested:
    #: These were FAILED or too old, and run again.
    resubmitted: tuple[DataId, ...]
    #: These are READY and do not run. None: a foreign client made the chunk, without a version.
    satisfied: Mapping[DataId, Manifest | None]


def request(
    ledger: Ledger,
    job: Job,
    dataids: Iterable[str],
    *,
    by: str,
    requested: datetime | None,
    run_id: RunId | None = None,
    reason: str = "",
) -> Requested:
    """Safe to repeat. `requested` is when a person asked, or None; `run_id` is the run that will make the chunks."""
    chunks = tuple(dict.fromkeys(data_id(dataid) for dataid in dataids))

    def act() -> Requested:
        with ledger.statement() as statement:
            resubmitted, ready = registry.request(
                statement, job, chunks, by=by, requested=requested, run_id=run_id, reason=reason
            )
        return Requested(resubmitted=resubmitted, satisfied=ready)

    return retry_conflicts(act)
