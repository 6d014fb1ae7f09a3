"""The deadlines of a DataSet as Dagster's freshness policy.

Dagster judges the newest materialization, whichever partition it is of. The ledger judges each partition.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

import dagster as dg

from ..model.dataset import Dataset
from ..model.partitions import TimePartitions

_HOUR = timedelta(hours=1)


def freshness_policy_of(dataset: Dataset) -> dg.FreshnessPolicy | None:
    """An asset has one policy: that of `expected_by`, if both are declared."""
    if dataset.expected_by is not None and isinstance(dataset.partitions, TimePartitions):
        hours, minutes = map(int, dataset.expected_by.split(":"))
        after_end = timedelta(hours=hours, minutes=minutes)
        return dg.FreshnessPolicy.cron(
            deadline_cron=_deadlines(dataset.partitions, hours, minutes),
            # Made after its partition ended. Deadlines of hours may lie several hours after their partitions.
            lower_bound_delta=min(after_end, _HOUR) if dataset.partitions.kind == "hourly" else after_end,
            timezone=dataset.timezone,
        )
    if dataset.fresh_within is not None:
        return dg.FreshnessPolicy.time_window(fail_window=dataset.fresh_within)
    return None


def _deadlines(partitions: TimePartitions, hours: int, minutes: int) -> str:
    match partitions.kind:
        case "hourly":
            return f"{minutes} * * * *"
        case "daily":
            return f"{minutes} {hours} * * *"
        case "weekly":
            return f"{minutes} {hours} * * {partitions.time_of(partitions.first).isoweekday() % 7}"
        case "monthly":
            return f"{minutes} {hours} 1 * *"
        case kind:
            assert_never(kind)
