"""`odf db`: the embedded Postgres, for the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opendataflow_dagster.model.errors import InvalidInput

from .options import answer, as_json
from .output import print_json

if TYPE_CHECKING:
    from opendataflow_dagster.ledger.embedded import EmbeddedPostgres


@click.group()
def db() -> None:
    """The ledger's database: the embedded Postgres, or the server in ODF_DATABASE_URL or dataflow.properties.

    \b
    Example:
      odf db start
      psql "$(odf db url)"
    """


@db.command()
@as_json
def start(json_wanted: bool) -> None:
    """Start the embedded Postgres; nothing happens when it runs.

    It is shared by all processes, outlives this command and needs no start by hand: whoever needs it first
    starts it.

    \b
    Example:
      odf db start
      ODF_HOME=/srv/flow/.odf odf db start --json
    """
    server = _embedded("start")
    server.start()
    _print_embedded(server, json_wanted)


@db.command()
@as_json
def stop(json_wanted: bool) -> None:
    """Stop the embedded Postgres; open transactions are rolled back.

    A `make dev` that runs starts it again: end that first.

    \b
    Example:
      odf db stop
    """
    server = _embedded("stop")
    stopped = server.stop()
    data = server.status().data
    if json_wanted:
        print_json({"stopped": stopped, "data": str(data)})
    else:
        click.echo(f"Postgres in {data} {'is stopped' if stopped else 'was not running'}.")


@db.command()
@as_json
def status(json_wanted: bool) -> None:
    """Show the database; exit with 1 when it does not answer. The password is never shown.

    \b
    Example:
      odf db status
      odf db status --json
    """
    from opendataflow_dagster.ledger.settings import configured_url

    server = configured_url()
    answers = _print_configured(server, json_wanted) if server else _print_embedded(_embedded("show"), json_wanted)
    answer(answers)


@db.command()
@as_json
def url(json_wanted: bool) -> None:
    """Print the url WITH its password, starting the embedded Postgres when needed.

    \b
    Example:
      psql "$(odf db url)"
    """
    from opendataflow_dagster.ledger.settings import database_url

    if json_wanted:
        print_json({"url": database_url()})
    else:
        click.echo(database_url())


@db.command()
@click.argument("arguments", metavar="[-- PSQL ARGUMENT...]", nargs=-1, type=click.UNPROCESSED)
def shell(arguments: tuple[str, ...]) -> None:
    """Open psql on the ledger; what follows `--` is handed on to it. The password is in no argument.

    \b
    Example:
      odf db shell
      odf db shell -- -c "select count(*) from dataflow.datastatus"
    """
    import os

    from opendataflow_dagster.ledger.psql import psql
    from opendataflow_dagster.ledger.settings import database_url

    program, environment = psql(database_url())
    # It takes our place: signals, the terminal and the exit code are psql's own.
    os.execve(program, [str(program), *arguments], environment)  # noqa: S606


def _embedded(verb: str) -> EmbeddedPostgres:
    from opendataflow_dagster.ledger.settings import configured_url, home, url_source

    if configured_url():
        raise InvalidInput(
            f"{url_source()} names a server, so there is no embedded Postgres to {verb}; "
            f"unset ODF_DATABASE_URL, or leave the folder of dataflow.properties, to use the embedded one"
        )
    from opendataflow_dagster.ledger.embedded import EmbeddedPostgres

    return EmbeddedPostgres(home())


def _print_embedded(server: EmbeddedPostgres, json_wanted: bool) -> bool:
    now = server.status()
    answers = now.running and now.problem is None
    if json_wanted:
        print_json(
            {
                "kind": "embedded",
                "running": now.running,
                "pid": now.pid,
                "host": "127.0.0.1" if now.running else None,
                "port": now.port,
                "version": now.version,
                "data": str(now.data),
                "log": str(now.log),
                "problem": now.problem,
            }
        )
        return answers
    if now.running:
        click.echo(f"Postgres {now.version} runs on 127.0.0.1:{now.port} (pid {now.pid}), data in {now.data}.")
    else:
        click.echo(f"Postgres in {now.data} is not running; `odf db start` starts it.")
    if now.problem:
        click.echo(f"But: {now.problem}")
    return answers


def _print_configured(server: str, json_wanted: bool) -> bool:
    from opendataflow_dagster.ledger.reach import reach_url
    from opendataflow_dagster.ledger.settings import url_source

    reach = reach_url(server)
    answers = reach.is_ready
    if json_wanted:
        print_json({"kind": "server", "running": answers, "version": reach.version, "problem": reach.reason})
    elif answers:
        click.echo(f"The server in {url_source()} answers (Postgres {reach.version}).")
    else:
        click.echo(f"The server in {url_source()} does not answer: {reach.reason}")
    return answers
