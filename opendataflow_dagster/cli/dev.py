"""`odf dev`: a project on this machine, with one command."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .connection import open_ledger

_HOME_VARIABLE = "DAGSTER_HOME"


@click.command()
@click.option("--port", type=click.IntRange(1, 65_535), default=3000, show_default=True, help="Port of Dagster's UI.")
def dev(port: int) -> None:
    """Run the project in this folder: install or upgrade the ledger, then start Dagster with its sensors.

    The ledger is the embedded Postgres, or the server in ODF_DATABASE_URL. The UI listens on 127.0.0.1 only, because it
    has no login. Ctrl-C stops Dagster; the embedded Postgres keeps running until `odf db stop`.

    \b
    Example:
      odf dev
      odf dev --port 3001
    """
    dagster_home = _dagster_home()
    # A second Dagster would start its daemon before it finds the port taken, and two daemons disturb each other.
    _refuse_taken(port)
    from opendataflow_dagster.ledger import schema

    with open_ledger() as ledger:
        schema.install(ledger)
    os.environ[_HOME_VARIABLE] = str(dagster_home)
    output.say(f"Dagster: http://127.0.0.1:{port} (this machine only: it has no login). Ctrl-C stops it.")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "opendataflow_dagster.orchestrator.dev", str(port)])  # noqa: S606


def _dagster_home() -> Path:
    """DAGSTER_HOME, or `dagster_home` in the project."""
    here = Path.cwd()
    if not (here / "workspace.yaml").exists():
        raise InvalidInput(f"{here} has no workspace.yaml; go to the folder of a project, or create one with odf init")
    home = Path(os.environ.get(_HOME_VARIABLE) or here / "dagster_home").expanduser().resolve()
    if not (home / "dagster.yaml").exists():
        raise InvalidInput(f"{home} has no dagster.yaml; copy that of a new project, made with odf init")
    return home


def _refuse_taken(port: int) -> None:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise InvalidInput(
            f"port {port} cannot be used ({os.strerror(error.errno or 0)}); stop what uses it, or choose another --port"
        ) from None
