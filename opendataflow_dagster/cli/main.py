"""`odf`: the entry point and the table of commands.

Commands are imported on first use and import what they need inside, so that `odf --help` is instant.
"""

from __future__ import annotations

import click

from . import output
from .groups import OdfGroup

_CLI = "opendataflow_dagster.cli"

#: What `odf --help` shows, by section: name -> ("module:attribute", summary).
SECTIONS = {
    "Inspect": {
        "status": (f"{_CLI}.status:status", "Show all DataSets: counts, waiting and running chunks, ETA"),
        "watch": (f"{_CLI}.watch:watch", "Follow the status or the changes live"),
        "why": (f"{_CLI}.why:why", "Explain why something does not run, or what failed"),
        "stale": (f"{_CLI}.stale:stale", "List what was made from old versions of its inputs"),
        "chunks": (f"{_CLI}.chunks:chunks", "Show the chunks of a DataSet as a heat-map or a list"),
        "chunk": (f"{_CLI}.chunk:chunk", "Show one chunk in full"),
        "diff": (f"{_CLI}.diff:diff", "Compare two versions of a chunk: rows, columns, checks, inputs"),
        "runs": (f"{_CLI}.runs:runs", "List runs: Job, start, duration, outcome"),
        "history": (f"{_CLI}.history:history", "Show status changes: who made them, and why"),
    },
    "Operate": {
        "plan": (f"{_CLI}.plan:plan", "Show what would run, and why the rest would not"),
        "resubmit": (f"{_CLI}.resubmit:resubmit", "Run chunks again"),
        "refresh": (f"{_CLI}.stale:refresh", "Make stale chunks again, producers first"),
        "hold": (f"{_CLI}.hold:hold", "Block chunks from running and being read"),
        "unhold": (f"{_CLI}.hold:unhold", "Release chunks from hold"),
        "skip": (f"{_CLI}.hold:skip", "Mark chunks as deliberately not produced"),
        "cancel": (f"{_CLI}.cancel:cancel", "Cancel running chunks"),
        "rollback": (f"{_CLI}.rollback:rollback", "Go back to an earlier version of a chunk"),
        "announce": (f"{_CLI}.announce:announce", "Mark chunks of an external DataSet as READY"),
        "throttle": (f"{_CLI}.throttle:throttle", "Set the concurrency limit of a Job"),
        "pause": (f"{_CLI}.throttle:pause", "Pause a Job"),
        "resume": (f"{_CLI}.throttle:resume", "Resume a paused Job"),
        "heal": (f"{_CLI}.heal:heal", "Recover from crashes and expired leases"),
        "sweep": (f"{_CLI}.sweep:sweep", "Remove files of old versions and failed attempts"),
        "table": (f"{_CLI}.table:table", "Refresh Spark catalog tables"),
        "delete-run": (f"{_CLI}.runs:delete_run", "Delete what a Job did for a dataid"),
    },
    "Run": {
        "run": (f"{_CLI}.run_script:run", "Run a script for the next chunk of its Job"),
        "force": (f"{_CLI}.run_script:force", "Run a script for a chunk, unchecked, for development"),
    },
    "Report": {
        "report": (f"{_CLI}.report:report", "Write an HTML page: what is wrong, heat-maps, throughput, runs"),
        "metrics": (f"{_CLI}.metrics:metrics", "Export Prometheus metrics: text, file or endpoint"),
        "digest": (f"{_CLI}.digest:digest", "Summarize recent failures in one message"),
    },
    "Set up": {
        "init": (f"{_CLI}.init:init", "Create a project"),
        "dev": (f"{_CLI}.dev:dev", "Run the project in this folder: the ledger, Dagster, its sensors"),
        "check": (f"{_CLI}.definitions:check", "Compare the code with the ledger"),
        "apply": (f"{_CLI}.definitions:apply", "Register what the code declares"),
        "dataset": (f"{_CLI}.dataset:dataset", "Manage DataSets: list, show, add, set, export, import"),
        "job": (f"{_CLI}.job:job", "Manage Jobs, and run them from another scheduler"),
        "db": (f"{_CLI}.db:db", "Manage the database: start, stop, status, url, shell"),
        "schema": (f"{_CLI}.schema:schema", "Manage the schema: install, verify, sql"),
        "secret": (f"{_CLI}.secret:secret", "Manage passwords of DataSets"),
        "completion": (f"{_CLI}.completion:completion", "Print a completion script for bash, zsh or fish"),
    },
}
COMMANDS = {name: path for section in SECTIONS.values() for name, (path, _) in section.items()}


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        output.write(f"odf {version('opendataflow-dagster')}")
    except PackageNotFoundError:
        output.write("odf (not installed, run from source)")
    ctx.exit()


@click.group(cls=OdfGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show a traceback when a command fails.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def odf(debug: bool) -> None:
    """OpenDataFlow checks that data is ready, right, placed, valid and safe before every run.

    \b
    Example:
      odf status
      odf why --failed
      odf resubmit --failed-since 6h
    """


def main() -> None:
    odf(prog_name="odf")
