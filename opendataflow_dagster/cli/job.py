"""`odf job`: the registered Jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.model.job import POLICY

from . import output, transfer
from .arguments import job_argument
from .connection import open_ledger
from .groups import LazyGroup
from .options import Change, change_options, combined, json_option
from .parsing import Duration, parse_input, parse_variable

if TYPE_CHECKING:
    from opendataflow_dagster.model.job import Input, Job

_SCHEDULER = "opendataflow_dagster.cli.foreign_scheduler"


@click.group(cls=LazyGroup, lazy={verb: f"{_SCHEDULER}:{verb}" for verb in ("begin", "renew", "end", "fail")})
def job() -> None:
    """Manage Jobs. Other schedulers run them with begin, renew, and end or fail.

    \b
    Example:
      odf job list
      odf job add average --in flights --out delays
      odf job begin average
    """


@job.command("list")
@json_option
def list_(json_wanted: bool) -> None:
    """List all Jobs with their inputs and outputs.

    \b
    Example:
      odf job list
      odf job list --json
    """
    from opendataflow_dagster.model.registry_json import job_to_json

    jobs = transfer.look_up(datasets=[]).jobs
    if json_wanted:
        output.print_json({"jobs": [job_to_json(job) for job in jobs]})
    elif not jobs:
        output.say("No Jobs are registered. Add one with: odf job add NAME --out DATASET")
    else:
        output.table(
            ["JOB", "inputs", "outputs", "lease", "max attempts"],
            [
                [
                    job.jobid,
                    _inputs(job),
                    ", ".join(job.outputs),
                    output.span(job.policy.lease),
                    str(job.policy.max_attempts),
                ]
                for job in jobs
            ],
            right=["max attempts"],
        )


@job.command()
@job_argument
@json_option
def show(jobid: str, json_wanted: bool) -> None:
    """Show the definition of a Job, its current limits, and who changed either.

    \b
    Example:
      odf job show average
    """
    from opendataflow_dagster.insight.history import control_changes, job_changes
    from opendataflow_dagster.model.registry_json import job_to_json
    from opendataflow_dagster.protocol.throttle import room

    from .why import print_limits

    job = _registered(jobid)
    with open_ledger() as ledger:
        now, limits, changes = room(ledger, jobid), control_changes(ledger, jobid), job_changes(ledger, jobid)
    if json_wanted:
        output.print_json({**job_to_json(job), "room": now, "steered": limits, "changes": changes})
        return
    rows = [
        ("inputs", _inputs(job)),
        ("outputs", ", ".join(job.outputs)),
        *((name, _setting(getattr(job.policy, name))) for name in POLICY),
        *((f"${name}", "(unset)" if value is None else value) for name, value in job.environment.items()),
        ("running", str(now.running)),
    ]
    output.table(["", "value"], [[name, value] for name, value in rows if value])
    print_limits(jobid, now)
    if limits:
        output.heading("\nLimit changes")
        output.table(
            ["at", "by", "concurrency limit", "", "reason"],
            [
                [
                    output.moment(limit.at),
                    limit.by,
                    "none" if limit.concurrency is None else str(limit.concurrency),
                    "paused" if limit.paused else "",
                    limit.reason or "",
                ]
                for limit in limits
            ],
        )
    transfer.print_changes(changes)


_definition_options = combined(
    click.option("--in", "inputs", multiple=True, metavar="DATASET[:all]", help="Input DataSet; repeatable."),
    click.option("--out", "outputs", multiple=True, metavar="DATASET", help="Output DataSet; repeatable."),
    click.option("--env", multiple=True, metavar="NAME=VALUE", help="Variable for its script; NAME alone unsets it."),
    click.option("--lease", type=Duration(), help="How long a claim is valid without renewal."),
    click.option("--max-attempts", type=click.IntRange(min=1), help="Automatic attempts before an operator must act."),
    click.option("--retry-on", metavar="REGEX", help="Which failures are retried automatically. Empty: none."),
    click.option("--retry-delay", type=Duration(), help="How long to wait before a retry."),
    click.option("--ordered/--not-ordered", default=None, help="Run chunks strictly one after the other."),
    # The older way to say: odf dataset set OUTPUT --on-new-input rebuild
    click.option("--cascade/--no-cascade", default=None, hidden=True),
    click.option("--catch-up/--no-catch-up", default=None, help="Run missed days of `today`."),
)


@job.command()
@job_argument
@_definition_options
@change_options
def add(change: Change, jobid: str, **given: Any) -> None:
    """Register a Job that a script or another scheduler runs.

    \b
    Example:
      odf job add average --in flights --in codes:all --out delays --lease 30min
    """
    from opendataflow_dagster.model.ids import DatasetId, job_id
    from opendataflow_dagster.model.job import Job

    if any(job.jobid == jobid for job in transfer.look_up(datasets=[]).jobs):
        raise InvalidInput(f"job {jobid} already exists; change it with: odf job set {jobid}")
    if not given["outputs"]:
        raise InvalidInput(f"job {jobid} has no OUT DataSet; pass at least one with --out")
    new = Job(jobid=job_id(jobid), outputs=tuple(DatasetId(datasetid) for datasetid in given["outputs"]))
    _register(change, new, given)


@job.command("set")
@job_argument
@_definition_options
@change_options
def set_(change: Change, jobid: str, **given: Any) -> None:
    """Change the definition of a Job; other settings stay. The next `odf apply` overrides it with the code.

    \b
    Example:
      odf job set average --retry-on "timeout|Connection" --retry-delay 5min
      odf job set average --in flights --in weather
    """
    job = _registered(jobid)
    if all(value in (None, ()) for value in given.values()):
        raise InvalidInput(f"job {jobid}: nothing to change; pass at least one option (see --help)")
    _register(change, job, given)


@job.command()
@job_argument
@change_options
def remove(change: Change, jobid: str) -> None:
    """Remove a Job with its policy and limits. Its chunks and their history stay. Refused while it makes a chunk.

    A Job that code declares comes back with the next `odf apply`, or when Dagster loads the code.

    \b
    Example:
      odf job remove average --reason "replaced by mean"
    """
    from opendataflow_dagster.protocol.remove import by_status, remove_job

    with change.ledger() as ledger:
        removed = remove_job(ledger, jobid, by=ledger.actor, reason=change.reason)
    kept = "; ".join(f"{datasetid} has {by_status(chunks)}" for datasetid, chunks in removed.chunks.items())
    stay = f" Its chunks stay: {kept}." if kept else ""
    change.report(output.jsonable(removed), f"Removed job {jobid}.{stay}")


@job.command("export")
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@click.option("--json", "json_wanted", is_flag=True, help="Accepted for consistency; the output is always JSON.")
def export(jobs: tuple[str, ...], json_wanted: bool) -> None:
    """Print Jobs and their DataSets as JSON, for `odf job import` on another ledger. Passwords are not exported.

    \b
    Example:
      odf job export > jobs.json
      odf job export average
    """
    from opendataflow_dagster.model.definition import Registry

    exported = transfer.look_up(datasets=[], jobs=list(jobs) or None).jobs
    used = {datasetid for job in exported for datasetid in (*job.outputs, *(needed.datasetid for needed in job.inputs))}
    known = transfer.look_up(jobs=[]).datasets
    datasets = tuple(definition for definition in known if definition.dataset.datasetid in used)
    transfer.export_definitions(Registry(datasets=datasets, jobs=exported))


job.add_command(transfer.import_)


def _registered(jobid: str) -> Job:
    (job,) = transfer.look_up(datasets=[], jobs=[jobid]).jobs
    return job


def _register(change: Change, before: Job, given: dict[str, Any]) -> None:
    from opendataflow_dagster.model.definition import Registry
    from opendataflow_dagster.model.ids import DatasetId

    policy = {name: given[name] for name in POLICY if given[name] is not None}
    if policy.get("retry_on") == "":
        policy["retry_on"] = None
    after = replace(
        before,
        inputs=tuple(parse_input(text) for text in given["inputs"]) or before.inputs,
        outputs=tuple(DatasetId(datasetid) for datasetid in given["outputs"]) or before.outputs,
        environment={**before.environment, **dict(parse_variable(text) for text in given["env"])},
        policy=replace(before.policy, **policy),
    )
    transfer.register(change, Registry(datasets=(), jobs=(after,)))


def _inputs(job: Job) -> str:
    def described(needed: Input) -> str:
        kind = needed.mapping.kind
        return needed.datasetid if kind == "equal" else f"{needed.datasetid} ({kind})"

    return ", ".join(described(needed) for needed in job.inputs)


def _setting(value: object) -> str:
    if isinstance(value, timedelta):
        return output.span(value) if value else ""
    return "" if value in (None, False) else str(value)
