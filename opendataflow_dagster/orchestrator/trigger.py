"""What started a run, and when. A person's request resubmits chunks; a sensor or a schedule does not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg

#: Tags of runs that no person requested.
_AUTOMATIC = (
    "dagster/sensor_name",
    "dagster/schedule_name",
    "dagster/auto_materialize",
    "dagster/from_automation_condition",
)
_BACKFILL = "dagster/backfill"
#: "Re-execute from failure" in the UI, for the run's steps or for its assets.
_FROM_FAILURE = ("dagster/is_resume_retry", "dagster/is_asset_resume_retry")
#: Before every version, so that a READY chunk satisfies the request whenever it was made.
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trigger:
    by: str
    #: When a person requested it: a chunk that is READY since then is not made again. None: not a person.
    requested: datetime | None
    #: The sensor or backfill that started it.
    sensor: str | None = None
    backfill: str | None = None


def trigger_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Trigger:
    # A re-execution by a person keeps the tags of the first run; Dagster's own retries have a number.
    again = run.parent_run_id is not None and "dagster/retry_number" not in run.tags
    for tag in _AUTOMATIC:
        if tag in run.tags and not again:
            by = f"dagster {tag.partition('/')[2]} {run.tags[tag]}"
            return Trigger(by=by, requested=None, sensor=run.tags.get("dagster/sensor_name"))
    name = run.tags.get("user", "dagster")
    if again and any(run.tags.get(tag) == "true" for tag in _FROM_FAILURE):
        return Trigger(by=f"{name} run {run.run_id}", requested=_LONG_AGO)
    if (backfill_id := run.tags.get(_BACKFILL)) and (backfill := instance.get_backfill(backfill_id)):
        requested = datetime.fromtimestamp(backfill.backfill_timestamp, UTC)
        return Trigger(by=f"{name} backfill {backfill_id}", requested=requested, backfill=backfill_id)
    record = instance.get_run_record_by_id(run.run_id)
    # A run without a record has just begun.
    requested = record.create_timestamp if record else datetime.now(UTC)
    if requested.tzinfo is None:
        requested = requested.replace(tzinfo=UTC)
    return Trigger(by=f"{name} run {run.run_id}", requested=requested)
