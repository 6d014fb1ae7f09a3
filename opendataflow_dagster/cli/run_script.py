"""`odf run` and `odf force`: run an unchanged script for a chunk of its Job."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opendataflow_dagster.model.errors import InvalidInput

from .connection import open_ledger
from .options import as_option, combined, json_option
from .output import print_json, printable, say, table, write
from .parsing import Number

if TYPE_CHECKING:
    from opendataflow_dagster.model.claim import Claim
    from opendataflow_dagster.scripts.environment import Provision
    from opendataflow_dagster.scripts.order import Order, Report, ScriptResult
    from opendataflow_dagster.scripts.output import Screen

    from .connection import Ledger


_script_options = combined(
    click.argument("script"),
    click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
    click.option("--job", "jobid", metavar="JOB", help="Job. Default: the script name without its extension."),
    click.option(
        "--timeout", type=Number(min_open=True, max=100_000_000), metavar="SECONDS",
        help="Terminate a script that takes longer; its chunk becomes FAILED.",
    ),
    click.option(
        "--grace", type=Number(max=1_000_000), default=10, show_default=True, metavar="SECONDS",
        help="Time between the termination signal and the kill.",
    ),
    as_option,
    click.option("--dry-run", is_flag=True, help="Show what would run, with its variables; change nothing."),
    json_option,
)  # fmt: skip


@click.command(context_settings={"allow_interspersed_args": False})
@_script_options
@click.option("--dataid", metavar="DATAID", help="Run this chunk; a finished one is resubmitted first.")
@click.option("--all", "everything", is_flag=True, help="Continue until no chunk is ready.")
@click.option(
    "--parallel", type=click.IntRange(1, 256), default=1, metavar="N", help="Number of chunks to run at a time."
)
def run(dataid: str | None, everything: bool, parallel: int, **options: Any) -> None:
    """Run SCRIPT for the next ready chunk of its Job and record the outcome.

    The script gets the chunk in $dataid and its DataSets in $<datasetid>_hostname and similar variables
    (docs/guides/scripts.md). Exit codes, also with --dry-run: 0 finished, 1 no chunk is ready, 2 none will be without
    an operator, 3 the Job is paused, 64 usage error, 128 and above failure.

    \b
    Example:
      odf run jobs/load.sh
      odf run --all --parallel 4 jobs/load.sh --verbose
      odf run --job load --dataid 2024-01-05 python3 load.py
    """
    from opendataflow_dagster.scripts.runner import run_chunk, run_next

    if dataid is not None and (everything or parallel > 1):
        raise InvalidInput("--dataid cannot be combined with --all or --parallel")

    def start(ledger: Ledger, order: Order) -> Report:
        if dataid is not None:
            return run_chunk(ledger, order, dataid)
        return run_next(ledger, order, everything=everything, parallel=parallel)

    _execute(start, several=parallel > 1, **options)


@click.command(context_settings={"allow_interspersed_args": False})
@_script_options
@click.option("--dataid", required=True, metavar="DATAID", help="Chunk to run.")
def force(dataid: str, **options: Any) -> None:
    """Run SCRIPT for a chunk without checking the five questions, for development. The history says that it was forced.

    \b
    Example:
      odf force --dataid test-1 jobs/load.sh
    """
    from opendataflow_dagster.scripts.runner import run_chunk

    _execute(lambda ledger, order: run_chunk(ledger, order, dataid, forced=True), several=False, **options)


def _execute(
    start: Callable[[Ledger, Order], Report],
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

    from .script_console import ScriptConsole

    console = ScriptConsole(only_stderr=json_wanted)
    outcomes: list[ScriptResult] = []
    rehearsed: list[tuple[Claim, Provision]] = []

    def screen(claim: Claim) -> Screen:
        return console.prefixed(claim.dataid) if several else console.plain()

    def tell(outcome: ScriptResult) -> None:
        if json_wanted:
            outcomes.append(outcome)
        write(f"odf: {printable(_sentence(outcome))}", err=True)

    command = (_executable(script), *arguments)
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
            rehearse=lambda claim, provision: rehearsed.append((claim, provision)),
        )
        with order.stop.listening():
            report = start(ledger, order)
    if dry_run:
        _print_rehearsal(order, report, rehearsed, json_wanted)
    else:
        _print_report(report, outcomes, json_wanted)
    click.get_current_context().exit(report.exit_code)


def _executable(script: str) -> str:
    """By its path, in the current folder, or on the PATH."""
    path = script if "/" in script else f"./{script}" if Path(script).is_file() else shutil.which(script)
    if path is None or not Path(path).is_file():
        raise InvalidInput(f"script {script} does not exist; pass its path")
    if not os.access(path, os.X_OK):
        raise InvalidInput(f"{path} is not executable; run: chmod +x {path}")
    return path


def _sentence(outcome: ScriptResult) -> str:
    chunk = f"{outcome.claim.jobid}/{outcome.claim.dataid}"
    if outcome.result == "finished":
        return f"{chunk} finished in {outcome.seconds:.1f} s"
    log = f" (log: {outcome.log})" if outcome.log else ""
    return f"{chunk} {outcome.result}: {outcome.reason}{log}"


def _print_report(report: Report, outcomes: list[ScriptResult], json_wanted: bool) -> None:
    if report.nothing is not None:
        write(f"odf: {printable(report.nothing.sentence)}", err=True)
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
                        "jobid": outcome.claim.jobid,
                        "dataid": outcome.claim.dataid,
                        "attempt": outcome.claim.attempt,
                        "result": outcome.result,
                        "exit_code": outcome.exit_code,
                        "seconds": round(outcome.seconds, 3),
                        "reason": outcome.reason,
                        "log": str(outcome.log) if outcome.log else None,
                    }
                    for outcome in outcomes
                ],
            }
        )


def _print_rehearsal(order: Order, report: Report, rehearsed: list[tuple[Claim, Provision]], json_wanted: bool) -> None:
    """Includes the variables, so that a wrong passphrase or value shows up before the real run."""
    variables = rehearsed[0][1].variables if rehearsed else {}
    shown = {
        name: "***" if name.endswith("_password") and value is not None else value
        for name, value in sorted(variables.items())
    }
    dataids = [claim.dataid for claim, _ in rehearsed]
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
    if not rehearsed:
        say(f"Dry run, nothing was changed. {order.command[0]} would not run: {nothing or 'no chunk is ready'}")
        return
    chunks = dataids[0] if len(dataids) == 1 else f"{len(dataids):,} chunks: {', '.join(dataids)}"
    say(f"Dry run, nothing was changed. {order.command[0]} would run for {chunks}")
    table(("variable", "value"), [(name, "(unset)" if value is None else value) for name, value in shown.items()])
