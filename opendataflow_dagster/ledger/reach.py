"""Whether a Postgres accepts our connection, found out with a real one. Nothing here raises."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import Enum, auto

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 5


class Access(Enum):
    READY = auto()
    WRONG_PASSWORD = auto()
    NO_DATABASE = auto()
    SILENT = auto()


@dataclass(frozen=True, kw_only=True)
class Reach:
    access: Access
    version: str | None = None
    #: Why not, or why it is of no use now. Never contains the password, nor a part of it.
    reason: str | None = None
    is_superuser: bool = False

    @property
    def is_ready(self) -> bool:
        return self.access is Access.READY


def reach_url(url: str) -> Reach:
    try:
        password = conninfo_to_dict(url).get("password")
    except psycopg.Error:
        # libpq quotes the part that it cannot parse, which may be the password.
        return Reach(access=Access.SILENT, reason="libpq cannot parse the URL")
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            return _ready(connection)
    except psycopg.Error as error:
        return _refused(error, str(password or ""))


def reach_loopback(*, port: int, user: str, password: str, database: str) -> Reach:
    try:
        with loopback(port, user, password, database) as connection:
            return _ready(connection)
    except psycopg.Error as error:
        return _refused(error, password)


def create_database(*, port: int, user: str, password: str, database: str) -> Reach:
    try:
        with loopback(port, user, password, "postgres") as connection:
            # Another starter may create it at the same time.
            with contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
            return _ready(connection)
    except psycopg.Error as error:
        return _refused(error, password)


def loopback(port: int, user: str, password: str, database: str) -> psycopg.Connection:
    """Sets everything that a PG* variable could change. With `require_auth` the server must prove that it knows the
    password, so another server on our port is not trusted and learns nothing."""
    return psycopg.connect(
        host=LOOPBACK,
        hostaddr=LOOPBACK,
        port=port,
        user=user,
        password=password,
        dbname=database,
        connect_timeout=CONNECT_SECONDS,
        sslmode="disable",
        gssencmode="disable",
        require_auth="scram-sha-256",
        options="",
        application_name="odf",
        autocommit=True,
    )


def _ready(connection: psycopg.Connection) -> Reach:
    major, minor = divmod(connection.info.server_version, 10_000)
    # The server reports it when a session begins.
    is_superuser = connection.info.parameter_status("is_superuser") == "on"
    return Reach(access=Access.READY, version=f"{major}.{minor}", is_superuser=is_superuser)


def _refused(error: psycopg.Error, password: str) -> Reach:
    """libpq reports a refused connection without an SQLSTATE, only as text, in English (lc_messages=C)."""
    reason = " ".join(str(error).split())
    if password:
        reason = reason.replace(password, "***")
    if "too many clients" in reason or "remaining connection slots" in reason:
        return Reach(access=Access.READY, reason=reason)
    if "password authentication failed" in reason:
        return Reach(access=Access.WRONG_PASSWORD, reason=reason)
    if "database" in reason and "does not exist" in reason:
        return Reach(access=Access.NO_DATABASE, reason=reason)
    return Reach(access=Access.SILENT, reason=reason)
