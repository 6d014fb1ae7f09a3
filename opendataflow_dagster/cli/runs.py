"""`odf runs` and `odf delete-run`: the runs of Jobs."""

from __future__ import annotations

import click

from opendataflow_dagster.model.ids import summary

from . import output
from .arguments import job_argument, optional_job
from .connection import open_ledger
from .options import Change, change_options, json_option

_STYLES = {"ENDED": "green", "FAILED": "red", None: "blue"}


@click.command()
@optional_job
@click.option("--running", is_flag=True, help="Only runs in progress.")
@click.option("--failed", is_flag=True, help="Only failed runs.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="Maximum number of runs.")
@json_option
def runs(jobid: str | None, running: bool, failed: bool, limit: int, json_wanted: bool) -> None:
    """List the runs of all Jobs, or of one, newest first.

    \b
    Example:
      odf runs
      odf runs average --failed
      odf runs --running --json
    """
    from opendataflow_dagster.insight.runs import find_runs as insight

    with open_ledger() as ledger:
        listed = insight(ledger, jobid=jobid, running=running, failed=failed, count=limit)
    if json_wanted:
        output.print_json({"runs": listed})
    elif not listed:
        output.say("No matching runs.")
    else:
        output.table(
            ["run", "job", "outcome", "started", "duration", "runner", "external id", "chunks held"],
            [
                [
                    str(run.run_id),
                    run.jobid,
                    (run.outcome or "RUNNING", _STYLES[run.outcome]),
                    output.moment(run.started),
                    output.span(run.duration),
                    run.runner,
                    run.external_id or "",
                    str(run.holds or ""),
                ]
                for run in listed
            ],
            right=["run", "chunks held"],
        )


@click.command("delete-run")
@job_argument
@click.argument("dataid")
@change_options
def delete_run(change: Change, jobid: str, dataid: str) -> None:
    """Delete the status rows of a Job for a dataid, as if it had never run. Versions and history are kept.

    \b
    Example:
      odf delete-run average 2024-01-03 --reason "wrong date"
    """
    from opendataflow_dagster.protocol.job_run import delete_run as verb

    with change.ledger() as ledger:
        deleted = verb(ledger, jobid, dataid, by=ledger.actor, reason=change.reason)
    sentence = f"Deleted {summary(deleted)}." if deleted else f"No change: job {jobid} has no rows for {dataid}."
    change.report({"chunks": deleted}, sentence)
