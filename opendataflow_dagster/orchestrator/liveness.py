"""A run says every few seconds that it lives; one of which nothing is heard for minutes is over.

A machine that goes down takes its runs along. Dagster's own launcher knows no health check, and would take them for
started for ever: their chunks spoken for, and their places taken among the runs that may work at once.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from time import time
from typing import Final

import dagster as dg

from ..ledger.database import Ledger
from ..ledger.reports import silence
from ..model.errors import OpenDataFlowError
from ..model.ids import RunId
from ..protocol.run import stay_in_sight
from .catalogue import Catalogue

_EVERY_SECONDS: Final = 15.0
#: Longer than a step takes to start, or a run to say that it has ended.
SILENCE_SECONDS: Final = 120.0


@contextmanager
def heard_of(ledger: Ledger, run_id: RunId) -> Iterator[None]:
    """While the block runs, the ledger hears of it."""
    over = threading.Event()

    def say() -> None:
        while not over.wait(_EVERY_SECONDS):
            # A ledger that is away hears of it next time.
            with suppress(OpenDataFlowError):
                stay_in_sight(ledger, run_id)

    thread = threading.Thread(target=say, name="odf-heard-of", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=10)


def end_silent_runs(
    instance: dg.DagsterInstance, ledger: Ledger, found: Catalogue, location: str | None, suspected: Collection[str]
) -> tuple[str, ...]:
    """Which started runs are silent now. Those that were suspected before are ended: a process that slept, or lost the
    database for a while, speaks before it is looked at a second time."""
    started = {
        record.dagster_run.run_id: record
        for record in instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        if _is_ours(record.dagster_run, found, location)
        and record.start_time is not None
        and time() - record.start_time > SILENCE_SECONDS
    }
    if not started:
        return ()
    with ledger.statement() as statement:
        silent_for = silence(statement, list(started))
    silent = [one for one in started if silent_for.get(one, SILENCE_SECONDS) >= SILENCE_SECONDS]
    for one in silent:
        if one in suspected:
            instance.report_run_failed(
                started[one].dagster_run,
                f"Nothing was heard of this run for {SILENCE_SECONDS / 60:.0f} minutes: its process or its machine is "
                f"gone. What it held runs again.",
            )
    return tuple(one for one in silent if one not in suspected)


def _is_ours(run: dg.DagsterRun, found: Catalogue, location: str | None) -> bool:
    """It makes chunks and does nothing else; a run of which we know only a part may be silent for good reasons."""
    origin = run.remote_job_origin
    if location and origin and origin.repository_origin.code_location_origin.location_name != location:
        return False
    ours = {one.asset_key for one, _ in found.made}
    return run.job_name in {job.jobid for _, job in found.made} or bool(
        run.asset_selection and run.asset_selection <= ours
    )
