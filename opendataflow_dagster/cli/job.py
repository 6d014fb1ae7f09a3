"""`odf job`: the Jobs that are registered, and their runs by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput
from opendataflow_dagster.model.job import POLICY

from . import output
from . import transfer as exchange
from .arguments import job_argument
from .frame import LazyGroup
from .options import Act, acts, as_json, open_ledger
from .registry_options import Duration, parse_input, parse_variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from opendataflow_dagster.model.job import Job

_RUNS = "opendataflow_dagster.cli.job_run"


@click.group(cls=LazyGroup, lazy={verb: f"{_RUNS}:{verb}" for verb in ("begin", "renew", "end", "fail")})
def job() -> None:
    """Jobs: list, show, add, set, export, import; begin, renew, end or fail a run by hand.

    \b
    Example:
      odf job list
      odf job add average --in flights --out delays
      odf job begin average
    """


@job.command("list")
@as_json
def list_(json_wanted: bool) -> None:
    """All Jobs: what they read and what they make.

    \b
    Example:
      odf job list
      odf job list --json
    """
    from opendataflow_dagster.model.registry_json import job_to_json

    known = exchange.look_up(datasets=[])
    if json_wanted:
        output.print_json({"jobs": [job_to_json(one) for one in known.jobs]})
    elif not known.jobs:
        output.say("No Jobs are registered. Add one: odf job add NAME --out DATASET")
    else:
        output.table(
            ["JOB", "reads", "makes", "lease", "attempts"],
            [
                [
                    one.jobid,
                    ", ".join(_input(each) for each in one.inputs),
                    ", ".join(one.outputs),
                    output.span(one.policy.lease),
                    str(one.policy.max_attempts),
                ]
                for one in known.jobs
            ],
            right=["attempts"],
        )


@job.command()
@job_argument
@as_json
def show(jobid: str, json_wanted: bool) -> None:
    """All that is registered of one Job, how operators limit it now, and who changed either.

    \b
    Example:
      odf job show average
    """
    from opendataflow_dagster.insight.history import control_changes, job_changes
    from opendataflow_dagster.model.registry_json import job_to_json
    from opendataflow_dagster.protocol.throttle import room

    from .why import limits

    (found,) = exchange.look_up(datasets=[], jobs=[jobid]).jobs
    with open_ledger() as ledger:
        now, steered, changes = room(ledger, jobid), control_changes(ledger, jobid), job_changes(ledger, jobid)
    if json_wanted:
        output.print_json({**job_to_json(found), "room": now, "steered": steered, "changes": changes})
        return
    rows = [
        ("reads", ", ".join(_input(each) for each in found.inputs)),
        ("makes", ", ".join(found.outputs)),
        *((name, _value(getattr(found.policy, name))) for name in POLICY),
        *((f"${name}", "(unset)" if value is None else value) for name, value in found.environment.items()),
        ("running", str(now.running)),
    ]
    output.table(["", "value"], [[name, value] for name, value in rows if value])
    limits(jobid, now)
    if steered:
        output.heading("\nWho limited it")
        output.table(
            ["at", "by", "at a time", "", "reason"],
            [
                [
                    output.moment(one.at),
                    one.by,
                    "any" if one.concurrency is None else str(one.concurrency),
                    "paused" if one.paused else "",
                    one.reason or "",
                ]
                for one in steered
            ],
        )
    exchange.show_changes(changes)


def _described(function: Callable[..., None]) -> Callable[..., None]:
    options = [
        click.option("--in", "inputs", multiple=True, metavar="DATASET[:all]", help="What it reads; may be repeated."),
        click.option("--out", "outputs", multiple=True, metavar="DATASET", help="What it makes; may be repeated."),
        click.option(
            "--env", multiple=True, metavar="NAME=VALUE", help="A variable for its script; NAME alone unsets."
        ),
        click.option("--lease", type=Duration(), help="How long a claim holds without renewal."),
        click.option("--max-attempts", type=click.IntRange(min=1), help="Tries by itself before a person must look."),
        click.option("--retry-on", metavar="REGEX", help="Which failures are retried by themselves. Empty: none."),
        click.option("--retry-delay", type=Duration(), help="How long to wait before that."),
        click.option("--ordered/--not-ordered", default=None, help="Strictly one chunk after the other."),
        click.option("--cascade/--no-cascade", default=None, help="Run again when an input was published anew."),
        click.option("--catch-up/--no-catch-up", default=None, help="Run days of `today` that were missed."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@job.command()
@job_argument
@_described
@acts
def add(act: Act, jobid: str, **given: Any) -> None:
    """Register a Job of a script or another scheduler. What exists is not touched.

    \b
    Example:
      odf job add average --in flights --in codes:all --out delays --lease 30min
    """
    from opendataflow_dagster.model.ids import DatasetId, job_id
    from opendataflow_dagster.model.job import Job

    if any(one.jobid == jobid for one in exchange.look_up(datasets=[]).jobs):
        raise InvalidInput(f"there is a job {jobid}; change it with: odf job set {jobid}")
    if not given["outputs"]:
        raise InvalidInput(f"job {jobid} has no OUT DataSet; name at least one with --out")
    _put(act, Job(jobid=job_id(jobid), outputs=tuple(DatasetId(one) for one in given["outputs"])), given)


@job.command("set")
@job_argument
@_described
@acts
def set_(act: Act, jobid: str, **given: Any) -> None:
    """Change what is registered of a Job; what is not named stays. Code overrides it at the next `odf apply`.

    \b
    Example:
      odf job set average --retry-on "timeout|Connection" --retry-delay 5min
      odf job set average --in flights --in weather
    """
    (found,) = exchange.look_up(datasets=[], jobs=[jobid]).jobs
    if all(value in (None, ()) for value in given.values()):
        raise InvalidInput(f"say what of {jobid} to change; see the options with --help")
    _put(act, found, given)


@job.command("export")
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@click.option("--json", "json_wanted", is_flag=True, help="It is JSON in any case.")
def export(jobs: tuple[str, ...], json_wanted: bool) -> None:
    """Print Jobs with their DataSets as JSON, for `odf job import` on another ledger. Passwords stay here.

    \b
    Example:
      odf job export > jobs.json
      odf job export average
    """
    from opendataflow_dagster.model.registry import Registry

    found = exchange.look_up(datasets=[], jobs=list(jobs) or None).jobs
    used = {name for one in found for name in (*one.outputs, *(each.datasetid for each in one.inputs))}
    known = exchange.look_up(jobs=[]).datasets
    exchange.write(Registry(datasets=tuple(one for one in known if one.dataset.datasetid in used), jobs=found))


@job.command("import")
@exchange.document_argument
@acts
def import_(act: Act, document: IO[str]) -> None:
    """Register what an export holds; importing it again changes nothing. All of it, or nothing.

    \b
    Example:
      odf job import jobs.json --dry-run
      odf job import jobs.json
    """
    exchange.take_in(act, document)


def _put(act: Act, before: Job, given: dict[str, Any]) -> None:
    from opendataflow_dagster.model.ids import DatasetId
    from opendataflow_dagster.model.registry import Registry

    policy = {name: given[name] for name in POLICY if given[name] is not None}
    if policy.get("retry_on") == "":
        policy["retry_on"] = None
    after = replace(
        before,
        inputs=tuple(parse_input(one) for one in given["inputs"]) or before.inputs,
        outputs=tuple(DatasetId(one) for one in given["outputs"]) or before.outputs,
        environment={**before.environment, **dict(parse_variable(one) for one in given["env"])},
        policy=replace(before.policy, **policy),
    )
    exchange.put_in(act, Registry(datasets=(), jobs=(after,)))


def _input(one: Any) -> str:
    return str(one.datasetid) if one.mapping.kind == "equal" else f"{one.datasetid} ({one.mapping.kind})"


def _value(value: object) -> str:
    from datetime import timedelta

    if isinstance(value, timedelta):
        return output.span(value) if value else ""
    return "" if value in (None, False) else str(value)
