"""How to start psql on a database: the program that comes with the embedded server, and its environment."""

from __future__ import annotations

import os
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from .embedded_cluster import program

_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}


def psql(url: str) -> tuple[Path, dict[str, str]]:
    """Everything goes through the environment: a password in an argument is seen by every user of the machine."""
    parts = conninfo_to_dict(url)
    wanted = {_VARIABLES[name]: str(value) for name, value in parts.items() if name in _VARIABLES}
    return program("psql"), {**os.environ, **wanted}
