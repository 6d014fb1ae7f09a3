"""How to start psql on a database: the program that comes with the embedded server, and its environment."""

from __future__ import annotations

import os
from pathlib import Path

from psycopg.pq import Conninfo

from .embedded_cluster import program


def psql(url: str) -> tuple[Path, dict[str, str]]:
    """Everything goes through the environment: a password in an argument is seen by every user of the machine. libpq
    itself says which variable a setting has, so that those for TLS come along."""
    given = {one.envvar: one.val for one in Conninfo.parse(url.encode()) if one.val is not None and one.envvar}
    return program("psql"), {**os.environ, **{name.decode(): value.decode() for name, value in given.items()}}
