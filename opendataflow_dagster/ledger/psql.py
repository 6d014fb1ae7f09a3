"""The psql that comes with the embedded server, and its environment."""

from __future__ import annotations

import os
from pathlib import Path

from psycopg.pq import Conninfo

from .embedded_cluster import program


def psql(url: str) -> tuple[Path, dict[str, str]]:
    """The URL is passed in the environment, because every user of the machine can see arguments. libpq names the
    variable of each setting, including those for TLS."""
    settings = {
        option.envvar.decode(): option.val.decode()
        for option in Conninfo.parse(url.encode())
        if option.val is not None and option.envvar
    }
    return program("psql"), {**os.environ, **settings}
