"""`odf`: the entry and the table of commands.

Commands are loaded when they are asked for, and import what they need inside: `odf --help` stays instant.
"""

from __future__ import annotations

import click

from .frame import OdfGroup

_CLI = "opendataflow_dagster.cli"

#: What `odf --help` shows, section by section: name -> ("module:attribute", what it does in a few words).
SECTIONS = {
    "See": {
        "status": (f"{_CLI}.status:status", "all DataSets: counts, what waits, what runs, when it is done"),
        "watch": (f"{_CLI}.watch:watch", "the same, live"),
        "why": (f"{_CLI}.why:why", "why something does not run; --failed: all failures, by cause"),
        "chunks": (f"{_CLI}.chunks:chunks", "the chunks of a DataSet, as a heat-map or a list"),
        "chunk": (f"{_CLI}.chunks:chunk", "show one chunk: its whole story"),
        "runs": (f"{_CLI}.runs:runs", "who ran which Job, when, how long, with which outcome"),
        "history": (f"{_CLI}.runs:history", "what changed, by whom and why"),
    },
    "Act": {
        "plan": (f"{_CLI}.plan:plan", "what would run, and why not the rest"),
        "resubmit": (f"{_CLI}.resubmit:resubmit", "run chunks again: the one act of recovery"),
        "hold": (f"{_CLI}.act:hold", "keep everybody away from chunks"),
        "unhold": (f"{_CLI}.act:unhold", "give held chunks back"),
        "skip": (f"{_CLI}.act:skip", "chunks that are deliberately not produced"),
        "cancel": (f"{_CLI}.act:cancel", "end what runs"),
        "rollback": (f"{_CLI}.versions:rollback", "go back to an earlier version of a chunk"),
        "announce": (f"{_CLI}.versions:announce", "chunks that someone else made are there"),
        "throttle": (f"{_CLI}.steer:throttle", "at most N chunks of a Job at a time"),
        "pause": (f"{_CLI}.steer:pause", "no chunk of a Job begins"),
        "resume": (f"{_CLI}.steer:resume", "a paused Job goes on"),
        "heal": (f"{_CLI}.heal:heal", "restore what crashes have left"),
        "sweep": (f"{_CLI}.sweep:sweep", "remove files of old versions and failed attempts"),
        "table": (f"{_CLI}.table:table", "for readers outside: refresh"),
        "delete-run": (f"{_CLI}.versions:delete_run", "forget what a Job did for a dataid"),
    },
    "Run": {
        "run": (f"{_CLI}.run:run", "run a script for the next chunk of its Job"),
        "force": (f"{_CLI}.run:force", "run it whatever the five answers are, for development"),
    },
    "Report": {
        "report": (f"{_CLI}.report:report", "one HTML page: heat-maps, failures, durations, SLA"),
        "metrics": (f"{_CLI}.metrics:metrics", "for Prometheus: text, file or endpoint"),
        "digest": (f"{_CLI}.digest:digest", "an outage as one message"),
    },
    "Set up": {
        "init": (f"{_CLI}.init:init", "a new project of your own"),
        "check": (f"{_CLI}.code:check", "compare the code with the ledger"),
        "apply": (f"{_CLI}.code:apply", "make the ledger equal to the code"),
        "dataset": (f"{_CLI}.dataset:dataset", "list, show, add, set, export, import"),
        "job": (f"{_CLI}.job:job", "the same for Jobs; begin, renew, end, fail a run by hand"),
        "db": (f"{_CLI}.db:db", "the ledger's database: start, stop, status, url, shell"),
        "schema": (f"{_CLI}.schema:schema", "its tables: install, verify, sql"),
        "secret": (f"{_CLI}.secret:secret", "passwords of DataSets: set, rotate, verify, ..."),
        "completion": (f"{_CLI}.completion:completion", "for bash, zsh and fish"),
    },
}
COMMANDS = {name: path for part in SECTIONS.values() for name, (path, _) in part.items()}


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"odf {version('opendataflow-dagster')}")
    except PackageNotFoundError:
        click.echo("odf (run from its source, not installed)")
    ctx.exit()


@click.group(cls=OdfGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
def odf(debug: bool) -> None:
    """OpenDataFlow: data that is ready, right, placed, valid and safe before every run.

    \b
    Example:
      odf status
      odf why --failed
      odf resubmit --failed-since 6h
    """


def main() -> None:
    odf(prog_name="odf")
