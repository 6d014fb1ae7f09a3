"""The runs of an orchestrator, as the ledger knows them: which are open, which are silent, and how one is closed."""

from __future__ import annotations

from collections.abc import Sequence

from ..ledger import reports
from ..ledger.database import Ledger
from ..ledger.reports import OpenRun, Silence
from ..model.ids import JobId, RunId
from ..protocol.cancel import cancel_run
from ..protocol.release import abandon_run


def open_runs(ledger: Ledger, jobids: Sequence[JobId]) -> list[OpenRun]:
    with ledger.statement() as statement:
        return reports.open_runs(statement, jobids)


def silence(ledger: Ledger, external_ids: Sequence[str]) -> dict[str, Silence]:
    """The time since the last heartbeat of each run that has begun."""
    with ledger.statement() as statement:
        return reports.silence(statement, external_ids)


def close_runs(ledger: Ledger, external_id: str, *, cancelled: bool) -> int:
    """Close the runs that the orchestrator calls `external_id`; returns how many chunks they still held."""
    with ledger.statement() as statement:
        run_ids = reports.runs_of(statement, external_id)
    return sum(close_run(ledger, run_id, external_id, cancelled=cancelled) for run_id in run_ids)


def close_run(ledger: Ledger, run_id: RunId, external_id: str, *, cancelled: bool) -> int:
    """Chunks of a cancelled run are FAILED until a person requests them again; those of a dead run are retried."""
    if cancelled:
        return len(cancel_run(ledger, run_id, by=f"a person in Dagster (run {external_id})"))
    return abandon_run(ledger, run_id, f"Dagster run {external_id} is over")
