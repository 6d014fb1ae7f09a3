"""`odf db`: the database of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput

from .groups import LazyGroup
from .options import exit_with_answer, json_option
from .output import jsonable, print_json, print_result, write

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.embedded import EmbeddedPostgres


@click.group(cls=LazyGroup)
def db() -> None:
    """Manage the database: the embedded Postgres, or the server named in ODF_DATABASE_URL or dataflow.properties.

    \b
    Example:
      odf db start
      psql "$(odf db url)"
    """


@db.command()
@json_option
def start(json_wanted: bool) -> None:
    """Start the embedded Postgres if it is not running.

    All processes share it, and it keeps running after this command. Commands that need it start it automatically.

    \b
    Example:
      odf db start
      ODF_HOME=/srv/flow/.odf odf db start --json
    """
    server = _embedded("start")
    server.start()
    _print_embedded(server, json_wanted)


@db.command()
@json_option
def stop(json_wanted: bool) -> None:
    """Stop the embedded Postgres. Open transactions are rolled back.

    Stop `odf dev` first: it would start it again.

    \b
    Example:
      odf db stop
    """
    server = _embedded("stop")
    stopped = server.stop()
    data = server.status().data
    text = f"Postgres in {data} {'stopped' if stopped else 'was not running'}."
    print_result(json_wanted, {"stopped": stopped, "data": str(data)}, text)


@db.command()
@json_option
def status(json_wanted: bool) -> None:
    """Show the state of the database. Exits with 1 if it cannot be reached. The password is never shown.

    \b
    Example:
      odf db status
      odf db status --json
    """
    from opendataflow_dagster.ledger.settings import configured_url

    server = configured_url()
    reachable = _print_configured(server, json_wanted) if server else _print_embedded(_embedded("show"), json_wanted)
    exit_with_answer(reachable)


@db.command()
@json_option
def url(json_wanted: bool) -> None:
    """Print the database URL, INCLUDING its password. Starts the embedded Postgres if needed.

    \b
    Example:
      psql "$(odf db url)"
    """
    from opendataflow_dagster.ledger.settings import database_url

    text = database_url()
    print_result(json_wanted, {"url": text}, text)


@db.command()
@click.argument("arguments", metavar="[-- PSQL ARGUMENT...]", nargs=-1, type=click.UNPROCESSED)
def shell(arguments: tuple[str, ...]) -> None:
    """Open psql on the ledger. Arguments after `--` are passed to psql; the password is not on the command line.

    \b
    Example:
      odf db shell
      odf db shell -- -c "select count(*) from dataflow.datastatus"
    """
    import os

    from opendataflow_dagster.ledger.psql import psql
    from opendataflow_dagster.ledger.settings import database_url

    program, environment = psql(database_url())
    # psql replaces this process: signals, the terminal and the exit code are its own.
    os.execve(program, [str(program), *arguments], environment)  # noqa: S606


def _embedded(verb: str) -> EmbeddedPostgres:
    from opendataflow_dagster.ledger.settings import configured_url, home, url_source

    if configured_url():
        raise InvalidInput(
            f"{url_source()} names a server, so there is no embedded Postgres to {verb}; to use the embedded one, "
            f"unset ODF_DATABASE_URL or run outside the folder of dataflow.properties"
        )
    from opendataflow_dagster.ledger.embedded import EmbeddedPostgres

    return EmbeddedPostgres(home())


def _print_embedded(server: EmbeddedPostgres, json_wanted: bool) -> bool:
    now = server.status()
    reachable = now.running and now.problem is None
    if json_wanted:
        print_json({"kind": "embedded", "host": "127.0.0.1" if now.running else None, **jsonable(now)})
        return reachable
    if now.running:
        write(f"Postgres {now.version} is running on 127.0.0.1:{now.port} (pid {now.pid}), data in {now.data}.")
    else:
        write(f"Postgres in {now.data} is not running; start it with: odf db start")
    if now.problem:
        write(f"Problem: {now.problem}")
    return reachable


def _print_configured(server: str, json_wanted: bool) -> bool:
    from opendataflow_dagster.ledger.reach import reach_url
    from opendataflow_dagster.ledger.settings import url_source

    reach = reach_url(server)
    reachable = reach.is_ready
    state = f"is running (Postgres {reach.version})." if reachable else f"cannot be reached: {reach.reason}"
    value = {"kind": "server", "running": reachable, "version": reach.version, "problem": reach.reason}
    print_result(json_wanted, value, f"The server in {url_source()} {state}")
    return reachable
