"""The planning sensor: announces chunks that run without a request, every hour and when the declarations change.

A chunk whose inputs are not the equal ones must be announced with its inputs before it can become runnable.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import dagster as dg

from ..engine.dataset_graph import DatasetGraph
from ..model.errors import OpenDataFlowError
from ..model.job import EqualChunk
from ..model.partitions import keys_until
from ..model.text import counted
from ..protocol.register import plan
from .resources import LedgerResource
from .tick import state_of, tick


def planning_sensor(graph: DatasetGraph, *, interval_seconds: int = 15) -> dg.SensorDefinition:
    jobs = [
        (job, partitions, ZoneInfo(node.dataset.timezone))
        for node, job in graph.produced
        if (partitions := node.dataset.partitions) is not None
        and (node.declaration.planned or any(not isinstance(source.mapping, EqualChunk) for source in job.inputs))
    ]

    @dg.sensor(
        name="planning",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Announces chunks that run without a request.",
    )
    def evaluate(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
        now = datetime.now(UTC)
        declared = [f"{job.jobid} {json.dumps(partitions.to_json())}" for job, partitions, _ in jobs]
        mark = hashlib.sha256("\n".join([f"{now:%Y-%m-%d-%H}", *declared]).encode()).hexdigest()[:8]
        if state_of(context.cursor) == mark:
            return tick("nothing new to plan", state=mark)
        count, errors = 0, list[str]()
        for job, partitions, zone in jobs:
            try:
                count += plan(ledger.ledger, job, keys_until(partitions, now.astimezone(zone).replace(tzinfo=None)))
            except Exception as error:  # the author's mapping function; other DataSets are still planned
                if isinstance(error, OpenDataFlowError) and error.retryable:
                    raise
                errors.append(f"{job.jobid}: {type(error).__name__}: {error}")
        if errors:
            raise dg.Failure(f"the chunks of {len(errors)} jobs could not be planned: {'; '.join(errors)}")
        return tick(f"planned: {counted(count, 'chunk')} of {counted(len(jobs), 'job')}", state=mark)

    return evaluate
