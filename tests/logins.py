"""Real logins with the three roles, on a database of the test server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

ROLES = ("reader", "operator", "admin")


@contextmanager
def logins_of(url: str, prefix: str) -> Iterator[dict[str, str]]:
    """The URL of a login for each role, and of one with none."""
    names = {role: f"{prefix}_{role}" for role in (*ROLES, "stranger")}
    with psycopg.connect(url, autocommit=True) as owner:
        for role, name in names.items():
            member = f" in role dataflow_{role}" if role in ROLES else ""
            owner.execute(f"create role {name} login password 'secret'{member}".encode())
        try:
            yield {
                role: make_conninfo("", **{**conninfo_to_dict(url), "user": name, "password": "secret"})
                for role, name in names.items()
            }
        finally:
            for name in names.values():
                owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", (name,))
                owner.execute(f"drop owned by {name}; drop role {name}".encode())
