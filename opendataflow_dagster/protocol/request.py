"""request: somebody asks an orchestrator for chunks. What that means for each is settled before anything is claimed.

A person's request makes FAILED chunks, and READY ones that are older than it, RESUBMIT. A chunk that became READY after
the request was made has what was asked for. Who is no person (a sensor, a schedule) resubmits nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ..ledger import registry, rows
from ..ledger.chunks import changed, ready_versions
from ..ledger.claims import give_way
from ..ledger.database import Ledger
from ..model.ids import ChunkKey, DataId, RunId, data_id
from ..model.job import Job
from ..model.manifest import Manifest


@dataclass(frozen=True, kw_only=True, slots=True)
class Requested:
    #: These were FAILED or too old, and run again.
    resubmitted: tuple[DataId, ...]
    #: These are READY: nothing runs. None: somebody else made it, without a version.
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
    """Safe to repeat. `requested` is when a person asked; None: it was no person. `run_id`: who shall make them."""
    wanted = tuple(dict.fromkeys(data_id(one) for one in dataids))
    keys = [ChunkKey(datasetid=output, dataid=one) for output in job.outputs for one in wanted]
    with ledger.transaction(actor=by) as transaction:
        registry.plan_chunks(transaction, job, wanted, run_id)
        again: list[ChunkKey] = []
        if requested is not None:
            again = changed(transaction, "request", keys, reason=reason, requested=requested, run_id=run_id)
        ready = ready_versions(transaction, [one for one in keys if one.datasetid == job.outputs[0]])
    if run_id is not None:
        # By itself, because it locks the rows in another order than those above.
        with ledger.transaction(actor=by) as transaction:
            give_way(transaction)
            transaction.run("ask_of_run", **rows.chunks(keys), run_id=run_id)
    return Requested(
        resubmitted=tuple(dict.fromkeys(one.dataid for one in again)),
        satisfied={key.dataid: manifest for key, manifest in ready.items()},
    )
