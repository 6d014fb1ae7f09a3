"""The login `odf` of the embedded server owns the databases and is not a superuser.

initdb makes one role, a superuser, and so does a server of release 0.1.0 have one: `odf`. On the first start it hands
everything that it owns to a plain role, which takes its name and password. Each step can be repeated after a crash.
"""

from __future__ import annotations

import psycopg

from ..model.errors import EmbeddedPostgresError
from .reach import loopback
from .schema_files import file_text


def make_login_plain(*, port: int, user: str, password: str, database: str) -> None:
    """Sessions of others end, because they have the rights of a superuser."""
    hand_over = file_text("embedded_owner.sql").encode()
    try:
        with loopback(port, user, password, database) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where usesysid = 10 and backend_type = 'client backend' and pid <> pg_backend_pid()"
            )
            if not connection.execute("select from pg_roles where rolname = 'odf_owner'").fetchall():
                connection.execute("create role odf_owner")
            others = connection.execute(
                "select datname from pg_database where datallowconn and oid >= 16384 and datname <> current_database()"
            ).fetchall()
        for (name,) in others:
            with loopback(port, user, password, name) as connection:
                connection.execute(hand_over)
        with loopback(port, user, password, database) as connection, connection.transaction():
            connection.execute(hand_over)
            connection.execute(file_text("embedded_plain_login.sql").encode())
    except psycopg.Error as error:
        raise EmbeddedPostgresError(
            f"the embedded Postgres cannot make its login {user} a plain one: {' '.join(str(error).split())}; "
            f"end all processes that use the server and try again"
        ) from error
