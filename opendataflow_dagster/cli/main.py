"""`odf`: the entry and the table of commands.

Commands are loaded when they are asked for, and import what they need inside: `odf --help` stays instant.
"""

from __future__ import annotations

import click

from .frame import OdfGroup

_CLI = "opendataflow_dagster.cli"

#: What `odf --help` shows, section by section: name -> "module:attribute".
SECTIONS = {
    "See": {
        "status": f"{_CLI}.status:status",
        "watch": f"{_CLI}.watch:watch",
        "why": f"{_CLI}.why:why",
        "chunks": f"{_CLI}.chunks:chunks",
        "chunk": f"{_CLI}.chunks:chunk",
        "runs": f"{_CLI}.runs:runs",
        "history": f"{_CLI}.runs:history",
    },
    "Act": {
        "plan": f"{_CLI}.plan:plan",
        "resubmit": f"{_CLI}.resubmit:resubmit",
        "hold": f"{_CLI}.act:hold",
        "unhold": f"{_CLI}.act:unhold",
        "skip": f"{_CLI}.act:skip",
        "cancel": f"{_CLI}.act:cancel",
        "rollback": f"{_CLI}.versions:rollback",
        "announce": f"{_CLI}.versions:announce",
        "throttle": f"{_CLI}.steer:throttle",
        "pause": f"{_CLI}.steer:pause",
        "resume": f"{_CLI}.steer:resume",
        "heal": f"{_CLI}.heal:heal",
        "delete-run": f"{_CLI}.versions:delete_run",
    },
    "Run": {
        "run": f"{_CLI}.run:run",
        "force": f"{_CLI}.run:force",
    },
    "Report": {
        "report": f"{_CLI}.report:report",
        "metrics": f"{_CLI}.metrics:metrics",
        "digest": f"{_CLI}.digest:digest",
    },
    "Set up": {
        "init": f"{_CLI}.init:init",
        "check": f"{_CLI}.code:check",
        "apply": f"{_CLI}.code:apply",
        "dataset": f"{_CLI}.dataset:dataset",
        "job": f"{_CLI}.job:job",
        "db": f"{_CLI}.db:db",
        "schema": f"{_CLI}.schema:schema",
        "secret": f"{_CLI}.secret:secret",
        "completion": f"{_CLI}.completion:completion",
    },
}
COMMANDS = {name: path for part in SECTIONS.values() for name, path in part.items()}


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
