"""The planning sensor: announces the chunks that run by themselves, once an hour and when other chunks are declared.

A chunk whose inputs are not simply the equal ones must be announced with them before it can become runnable.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import dagster as dg

from ..engine.dataset_graph import Catalogue
from ..model.errors import OpenDataFlowError
from ..model.job import EqualChunk
from ..model.partitions import keys_until
from ..protocol.register import plan
from .resources import LedgerResource


def planning_sensor(found: Catalogue, *, interval_seconds: int = 15) -> dg.SensorDefinition:
    jobs = [
        (job, partitions, ZoneInfo(one.dataset.timezone))
        for one, job in found.made
        if (partitions := one.dataset.partitions) is not None
        and (one.declaration.planned or any(not isinstance(source.mapping, EqualChunk) for source in job.inputs))
    ]

    @dg.sensor(
        name="planning",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Announces the chunks that run by themselves.",
    )
    def plan_all(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
        now = datetime.now(UTC)
        declared = [f"{job.jobid} {json.dumps(partitions.to_json())}" for job, partitions, _ in jobs]
        mark = hashlib.sha256("\n".join([f"{now:%Y-%m-%d-%H}", *declared]).encode()).hexdigest()
        if context.cursor == mark:
            return dg.SensorResult(skip_reason="planned: 0", cursor=mark)
        count, wrong = 0, list[str]()
        for job, partitions, zone in jobs:
            try:
                count += plan(ledger.ledger, job, keys_until(partitions, now.astimezone(zone).replace(tzinfo=None)))
            except Exception as error:  # a mapping is the author's own function: it holds back no other DataSet
                if isinstance(error, OpenDataFlowError) and error.retryable:
                    raise
                wrong.append(f"{job.jobid}: {type(error).__name__}: {error}")
        if wrong:
            raise dg.Failure(f"chunks of {len(wrong)} Jobs could not be planned: {'; '.join(wrong)}")
        return dg.SensorResult(skip_reason=f"planned: {count}", cursor=mark)

    return plan_all
