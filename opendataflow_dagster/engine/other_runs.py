"""What other runs make: a chunk that one of them is making is waited for instead of reported as refused."""

from __future__ import annotations

import threading
from time import monotonic

from ..ledger.chunks import find, ready_versions
from ..ledger.database import Ledger
from ..model.ids import ChunkKey, DataId, DatasetId
from ..model.manifest import Manifest
from ..model.status import Status
from ..model.verdict import Code
from .retry import PAUSE_SECONDS
from .run_result import RunResult

_WAIT_SECONDS = 120.0


def wait_for_other_runs(ledger: Ledger, datasetid: DatasetId, result: RunResult) -> dict[DataId, Manifest | None]:
    """The chunks that were refused as LOCKED and that other runs have published since; they are no longer refused.

    None: the chunk is READY without a version.
    """
    satisfied: dict[DataId, Manifest | None] = {}
    until = monotonic() + _WAIT_SECONDS
    while locked := [dataid for dataid, verdict in result.refused.items() if verdict.code == Code.LOCKED]:
        keys = [ChunkKey(datasetid=datasetid, dataid=dataid) for dataid in locked]
        with ledger.statement() as statement:
            ready = ready_versions(statement, keys)
            is_running = any(chunk.status == Status.RUNNING for chunk in find(statement, keys))
        for key, manifest in ready.items():
            del result.refused[key.dataid]
            satisfied[key.dataid] = manifest
        if not is_running or monotonic() > until:
            break
        threading.Event().wait(PAUSE_SECONDS)
    return satisfied
