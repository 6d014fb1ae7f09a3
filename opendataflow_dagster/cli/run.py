"""`odf run` and `odf force`: a script for the next chunk of its Job, unchanged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput

from .arguments import Number
from .options import as_json, open_ledger
from .output import print_json, printable, say, table

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.database import Ledger
    from opendataflow_dagster.model.claim import Claim
    from opendataflow_dagster.scripts.environment import Provision
    from opendataflow_dagster.scripts.order import Order, Report, ScriptResult
    from opendataflow_dagster.scripts.output import Screen


def _options(function: Any) -> Any:
    """What `run` and `force` have in common."""
    for option in (
        as_json,
        click.option("--dry-run", is_flag=True, help="Show what would run with which variables; change nothing."),
        click.option("--as", "by", metavar="NAME", help="Who acts, for the history. Default: the login."),
        click.option(
            "--grace", type=Number(max=1_000_000), default=10, show_default=True, metavar="SECONDS",
            help="Time between a request to end and the kill.",
        ),
        click.option(
            "--timeout", type=Number(min_open=True, max=100_000_000), metavar="SECONDS",
            help="End a script that takes longer; its chunk has FAILED.",
        ),
        click.option("--job", "jobid", metavar="JOB", help="The Job. Default: the script's name, without extension."),
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
        click.argument("script"),
    ):  # fmt: skip
        function = option(function)
    return function


@click.command(context_settings={"allow_interspersed_args": False})
@_options
@click.option("--dataid", metavar="DATAID", help="This chunk; one that is over already is resubmitted first.")
@click.option("--all", "everything", is_flag=True, help="Go on until nothing is ready.")
@click.option("--parallel", type=click.IntRange(1, 256), default=1, metavar="N", help="So many chunks at a time.")
def run(dataid: str | None, everything: bool, parallel: int, **options: Any) -> None:
    """Run SCRIPT for the next chunk of its Job that is ready, and record how it ended.

    The script finds the chunk in $dataid and its DataSets in $<datasetid>_hostname and so on (docs/guides/scripts.md).
    Exit codes: 0 finished, 1 nothing is ready, 2 nothing ever will be without a person, 3 the Job is paused, 64 wrong
    usage, 128 and above a failure; --dry-run has the same.

    \b
    Example:
      odf run jobs/load.sh
      odf run --all --parallel 4 jobs/load.sh --verbose
      odf run --job load --dataid 2024-01-05 python3 load.py
    """
    from opendataflow_dagster.scripts.runner import run_chunk, run_next

    if dataid is not None and (everything or parallel > 1):
        raise InvalidInput("--dataid names one chunk; leave --all and --parallel away")

    def act(ledger: Ledger, order: Order) -> Report:
        if dataid is not None:
            return run_chunk(ledger, order, dataid)
        return run_next(ledger, order, everything=everything, parallel=parallel)

    _execute(act, several=parallel > 1, **options)


@click.command(context_settings={"allow_interspersed_args": False})
@_options
@click.option("--dataid", required=True, metavar="DATAID", help="The chunk.")
def force(dataid: str, **options: Any) -> None:
    """Run SCRIPT on a chunk without asking the five questions, for development. The history says that it was forced.

    \b
    Example:
      odf force --dataid test-1 jobs/load.sh
    """
    from opendataflow_dagster.scripts.runner import run_chunk

    _execute(lambda ledger, order: run_chunk(ledger, order, dataid, forced=True), several=False, **options)


def _execute(
    act: Callable[[Ledger, Order], Report],
    *,
    several: bool,
    script: str,
    arguments: tuple[str, ...],
    jobid: str | None,
    timeout: float | None,
    grace: float,
    by: str | None,
    dry_run: bool,
    json_wanted: bool,
) -> None:
    from opendataflow_dagster.ledger.settings import home
    from opendataflow_dagster.model.ids import job_id
    from opendataflow_dagster.scripts.order import Order
    from opendataflow_dagster.scripts.program import Limits

    from .screen import Console

    console = Console(only_stderr=json_wanted)
    outcomes: list[ScriptResult] = []
    would: list[tuple[Claim, Provision]] = []

    def screen(claim: Claim) -> Screen:
        return console.prefixed(claim.dataid) if several else console.plain()

    def tell(outcome: ScriptResult) -> None:
        if json_wanted:
            outcomes.append(outcome)
        click.echo(f"odf: {printable(_sentence(outcome))}", err=True)

    command = (_found(script), *arguments)
    job = job_id(jobid or Path(script).stem)
    with open_ledger(by=by, rehearsal=dry_run) as ledger:
        order = Order(
            jobid=job,
            command=command,
            logs=home() / "scripts",
            by=ledger.actor,
            screen=screen,
            limits=Limits(grace=grace, timeout=timeout),
            tell=tell,
            rehearse=lambda claim, found: would.append((claim, found)),
        )
        with order.stop.listening():
            report = act(ledger, order)
    if dry_run:
        _tell_rehearsal(order, report, would, json_wanted)
    else:
        _tell_report(report, outcomes, json_wanted)
    click.get_current_context().exit(report.exit_code)


def _found(script: str) -> str:
    """The program to start: as it is written, in this folder, or on the PATH."""
    path = script if "/" in script else f"./{script}" if Path(script).is_file() else shutil.which(script)
    if path is None or not Path(path).is_file():
        raise InvalidInput(f"there is no script {script}; give its path")
    if not os.access(path, os.X_OK):
        raise InvalidInput(f"{path} is not executable; run: chmod +x {path}")
    return path


def _sentence(outcome: ScriptResult) -> str:
    chunk = f"{outcome.claim.jobid}/{outcome.claim.dataid}"
    if outcome.result == "finished":
        return f"{chunk} finished in {outcome.seconds:.1f} s"
    log = f" (log: {outcome.log})" if outcome.log else ""
    return f"{chunk} {outcome.result}: {outcome.reason}{log}"


def _tell_report(report: Report, outcomes: list[ScriptResult], json_wanted: bool) -> None:
    if report.nothing is not None:
        click.echo(f"odf: {printable(report.nothing.sentence)}", err=True)
    if json_wanted:
        print_json(
            {
                "finished": report.finished,
                "failed": report.failed,
                "lost": report.lost,
                "exit_code": report.exit_code,
                "nothing": report.nothing.sentence if report.nothing else None,
                "chunks": [
                    {
                        "jobid": one.claim.jobid,
                        "dataid": one.claim.dataid,
                        "attempt": one.claim.attempt,
                        "result": one.result,
                        "exit_code": one.exit_code,
                        "seconds": round(one.seconds, 3),
                        "reason": one.reason,
                        "log": str(one.log) if one.log else None,
                    }
                    for one in outcomes
                ],
            }
        )


def _tell_rehearsal(order: Order, report: Report, would: list[tuple[Claim, Provision]], json_wanted: bool) -> None:
    """The variables, too: a wrong passphrase or a value that does not fit is found before the night."""
    variables = would[0][1].variables if would else {}
    shown = {
        name: "***" if name.endswith("_password") and value is not None else value
        for name, value in sorted(variables.items())
    }
    dataids = [claim.dataid for claim, _ in would]
    nothing = report.nothing.sentence if report.nothing else None
    if json_wanted:
        print_json(
            {
                "dry_run": True,
                "command": order.command,
                "dataids": dataids,
                "nothing": nothing,
                "exit_code": report.exit_code,
                "variables": shown,
            }
        )
        return
    if not would:
        say(f"Dry run, nothing was changed. {order.command[0]} would not run: {nothing or 'there is nothing to do'}")
        return
    said = dataids[0] if len(dataids) == 1 else f"{len(dataids):,} chunks: {', '.join(dataids)}"
    say(f"Dry run, nothing was changed. {order.command[0]} would run for {said}")
    table(("variable", "value"), [(name, "(unset)" if value is None else value) for name, value in shown.items()])
