"""A run says every few seconds that it lives; one of which nothing is heard for minutes is over.

A machine that goes down takes its runs along. Dagster's own launcher knows no health check, and would take them for
started for ever: their chunks spoken for, and their places taken among the runs that may work at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic, time
from typing import Final

import dagster as dg

from ..ledger.database import Ledger
from ..ledger.reports import Silence, silence
from ..model.ids import RunId
from ..protocol.job_run import record_heartbeat
from .catalogue import Catalogue

_EVERY_SECONDS: Final = 5.0
#: A run that was not heard of for so long is suspected, and over when it stays silent for as long again: longer than a
#: step takes to start, a run to say that it has ended, or one that lost the database to speak when it is back.
SILENCE_SECONDS: Final = 60.0


@contextmanager
def heard_of(ledger: Ledger, run_id: RunId) -> Iterator[None]:
    """While the block runs, the ledger hears of it."""
    over = threading.Event()

    def say() -> None:
        while not over.wait(_EVERY_SECONDS):
            # Whatever it was, the next time may be better; and nobody must die of it.
            with suppress(Exception):
                record_heartbeat(ledger, run_id)

    thread = threading.Thread(target=say, name="odf-heard-of", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=10)


class SilentRuns:
    """Ends started runs of which nothing is heard. What it suspects it only remembers: a new process begins anew."""

    def __init__(self, found: Catalogue) -> None:
        self._assets = {job.jobid: one.asset_key for one, job in found.made}
        #: Since when each is suspected, and when it looked last, by a clock that stands still while the machine sleeps.
        self._since: dict[str, float] = {}
        self._looked = 0.0

    def end(self, context: dg.SensorEvaluationContext, ledger: Ledger) -> int:
        """How many it has ended."""
        now, ended = monotonic(), 0
        if now - self._looked > SILENCE_SECONDS:
            self._since.clear()  # nobody could look, and perhaps nobody could speak: the database was away
        self._looked = now
        self._since = {one: self._since.get(one, now) for one in self._silent(context, ledger)}
        for one, since in self._since.items():
            run = context.instance.get_run_by_id(one) if now - since >= SILENCE_SECONDS else None
            if run is not None and run.status == dg.DagsterRunStatus.STARTED:
                context.instance.report_run_failed(
                    run,
                    f"Nothing was heard of this run for {2 * SILENCE_SECONDS:.0f} seconds: its process or its machine "
                    f"is gone. What it held runs again.",
                )
                ended += 1
        return ended

    def _silent(self, context: dg.SensorEvaluationContext, ledger: Ledger) -> list[str]:
        records = context.instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        started = {
            one.dagster_run.run_id: one.dagster_run
            for one in records
            if one.start_time is not None
            and time() - one.start_time > SILENCE_SECONDS
            and self._made_by(one.dagster_run)
        }
        if not started:
            return []
        with ledger.statement() as statement:
            heard = silence(statement, list(started))
        return [one for one, run in started.items() if self._is_silent(context, run, heard.get(one))]

    def _is_silent(self, context: dg.SensorEvaluationContext, run: dg.DagsterRun, heard: Silence | None) -> bool:
        # Before our steps, between them and after them, checks of its own may work for as long as they like.
        may_be_silent = _has_checks(context, self._made_by(run))
        if heard is None:
            return _is_of(context, run) and not may_be_silent
        return heard.seconds > SILENCE_SECONDS and (heard.works or not may_be_silent)

    def _made_by(self, run: dg.DagsterRun) -> set[dg.AssetKey]:
        """Our assets, if it makes them and nothing else; a run of which we know only a part may be silent for good
        reasons."""
        made = run.asset_selection or {one for jobid, one in self._assets.items() if jobid == run.job_name}
        return set(made) if made <= set(self._assets.values()) else set()


def _is_of(context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    """Was it started for this code location? Of those that have not begun anything the ledger does not know it."""
    mine, origin = context.code_location_origin, run.remote_job_origin
    if mine is None or origin is None:
        return False
    return origin.repository_origin.code_location_origin.location_name == mine.location_name


def _has_checks(context: dg.SensorEvaluationContext, assets: set[dg.AssetKey]) -> bool:
    """Checks of Dagster, which somebody has put on these assets, are steps of their own."""
    location = context.repository_def
    return location is None or any(one.asset_key in assets for one in location.asset_graph.asset_check_keys)
