"""The embedded Postgres: one real server for each ODF_HOME, started on first use and shared by all processes.

    start   attach if the server accepts connections; otherwise, under the lock postgres.lock: launch it if none of its
            processes is alive, and wait until it accepts connections
    stop    a fast shutdown, and wait until the last process has ended

The server outlives the process that started it. `embedded_files` knows whether it is alive, `embedded_user` as which
user it runs, `embedded_cluster` how its data folder is created, and `embedded_process` which processes belong to it.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never
from urllib.parse import quote

from ..model.errors import EmbeddedPostgresError
from .embedded_cluster import INITDB_SECONDS, ROLE, create_data_folder, program, refuse_a_foreign_folder, version_of
from .embedded_files import POLL_SECONDS, HomeFiles
from .embedded_owner import make_login_plain
from .embedded_process import (
    Postmaster,
    end_orphans,
    end_postmaster,
    find_postmaster,
    free_port,
    last_port,
    launch_postmaster,
)
from .embedded_user import ServerUser, server_user
from .reach import LOOPBACK, Access, Reach, create_database, reach_loopback

DATABASE = "opendataflow"

#: A live postmaster may be replaying the WAL after a crash, which takes minutes.
START_SECONDS = 300
#: Processes that outlived their postmaster are told to quit, and do so quickly.
LEFTOVER_SECONDS = 30
STOP_SECONDS = 60
#: Longer than any holder's own time limit.
LOCK_SECONDS = INITDB_SECONDS + START_SECONDS + LEFTOVER_SECONDS

PORT_TAKEN = "Address already in use"
STILL_IN_USE = "pre-existing shared memory block"
READY_LINE = "ready to accept connections"
CLIENT_MESSAGE = "the database system is "
LAUNCHES_WITHOUT_A_REASON = 5


@dataclass(frozen=True, kw_only=True)
class EmbeddedStatus:
    """A server can be running and still have a problem that makes it unusable."""

    running: bool
    pid: int | None
    port: int | None
    version: str | None
    data: Path
    log: Path
    problem: str | None


class EmbeddedPostgres:
    def __init__(self, home: Path) -> None:
        # One spelling of the path for the lock, the messages and `ps`, however the caller wrote it.
        self._files = HomeFiles(home=home.expanduser().resolve())

    def start(self) -> str:
        with self._os_errors_explained():
            refuse_a_foreign_folder(self._files.data)
            return self._attach() or self._start_alone()

    def url(self) -> str:
        with self._os_errors_explained():
            postmaster = find_postmaster(self._files.data)
            if postmaster is None:
                raise EmbeddedPostgresError(
                    f"the embedded Postgres in {self._files.home} is not running; run `odf db start`"
                )
            return self._url(postmaster)

    def stop(self) -> bool:
        """Whether there was something to stop."""
        with self._os_errors_explained():
            if not self._files.is_server_alive():
                return False
            with self._files.start_locked(LOCK_SECONDS):
                self._end_every_process()
            return True

    def status(self) -> EmbeddedStatus:
        with self._os_errors_explained():
            postmaster = find_postmaster(self._files.data)
            version, problem = version_of(self._files.data), None
            try:
                refuse_a_foreign_folder(self._files.data)
                if postmaster is not None:
                    reach = self._reach(postmaster)
                    version, problem = reach.version or version, reach.reason
            except EmbeddedPostgresError as error:
                problem = str(error)
            return EmbeddedStatus(
                running=postmaster is not None,
                pid=postmaster.pid if postmaster else None,
                port=postmaster.port if postmaster else None,
                version=version,
                data=self._files.data,
                log=self._files.log,
                problem=problem,
            )

    def _attach(self, *, alone: bool = False) -> str | None:
        """The URL if the server accepts us; None if it is not up yet, or only a starter that is alone prepares it."""
        postmaster = find_postmaster(self._files.data)
        if postmaster is None or not postmaster.ready:
            return None
        reach = self._reach(postmaster)
        match reach.access:
            case Access.READY if reach.is_superuser:
                if not alone:
                    return None
                password = self._files.read_password()
                make_login_plain(port=postmaster.port, user=ROLE, password=password, database=DATABASE)
                return self._url(postmaster)
            case Access.READY:
                self._files.rotate_log()
                return self._url(postmaster)
            case Access.SILENT:
                return None
            case Access.NO_DATABASE:
                password = self._files.read_password()
                created = create_database(port=postmaster.port, user=ROLE, password=password, database=DATABASE)
                if created.is_ready:
                    return self._attach(alone=alone)
                if find_postmaster(self._files.data) is None:
                    return None  # it was killed in the meantime
                raise EmbeddedPostgresError(
                    f"the embedded Postgres cannot create its database {DATABASE}: {created.reason}; "
                    f"read {self._files.log}, fix the cause and try again"
                )
            case Access.WRONG_PASSWORD:
                raise EmbeddedPostgresError(
                    f"the embedded Postgres rejects the password in {self._files.password}; restore the original one, "
                    f"or stop the server (`odf db stop`) and move {self._files.data} away to start with an empty "
                    f"database"
                )
            case _:
                assert_never(reach.access)

    def _start_alone(self) -> str:
        user = server_user(self._files.home, self._files.data)
        self._files.make_home(user.gid)
        with self._files.start_locked(LOCK_SECONDS):
            refuse_a_foreign_folder(self._files.data)
            # While we waited, another starter may have created the data folder, and so chosen the user.
            user = server_user(self._files.home, self._files.data)
            launches: list[int] = []  # the offset in the log where each begins
            began, port = time.monotonic(), last_port(self._files.data)
            while (url := self._attach(alone=True)) is None:
                alive_lock = self._files.take_alive_lock()
                if alive_lock is not None:
                    try:
                        if launches:
                            port = self._port_after_failure(launches, port)
                        port = port or free_port()
                        launches.append(self._launch(user, port, alive_lock))
                    finally:
                        os.close(alive_lock)
                    if len(launches) == 1:
                        began = time.monotonic()  # initdb has a time limit of its own
                self._wait(began, START_SECONDS)
            return url

    def _launch(self, user: ServerUser, port: int, alive_lock: int) -> int:
        """Returns the offset in the log where this launch begins."""
        self._files.sweep()
        user = user.passing(self._files.home, program("postgres"))
        if version_of(self._files.data) is None:
            create_data_folder(self._files, user)
        self._files.read_password()  # without it the server would run and accept nobody
        log = self._files.open_log()
        try:
            begins = os.fstat(log).st_size
            launch_postmaster(self._files, user, port=port, log=log, alive_lock=alive_lock)
        finally:
            os.close(log)
        return begins

    def _port_after_failure(self, launches: list[int], port: int | None) -> int | None:
        """The port for another launch. Raises if the log shows that another cannot help."""
        with self._files.log.open("rb") as log:
            log.seek(launches[-1])
            lines = log.read().decode(errors="replace").strip().splitlines()
        if any(PORT_TAKEN in line for line in lines):
            return None
        if any(STILL_IN_USE in line for line in lines):
            return port
        killed_later = any(READY_LINE in line for line in lines)
        fatal = [] if killed_later else [part for line in lines for part in re.findall(r"(?:FATAL|PANIC): +(.*)", line)]
        reasons = [reason for reason in fatal if not reason.startswith(CLIENT_MESSAGE)]
        if not reasons and len(launches) < LAUNCHES_WITHOUT_A_REASON:
            return port  # a killed server logs no reason
        reasons = reasons or lines[-1:]
        raise EmbeddedPostgresError(
            f"the embedded Postgres in {self._files.data} failed to start: {'; '.join(reasons) or 'no reason logged'}; "
            f"read {self._files.log}, fix the cause and try again"
        )

    def _end_every_process(self) -> None:
        began, signalled = time.monotonic(), None
        while self._files.is_server_alive():
            postmaster = find_postmaster(self._files.data)
            if postmaster is not None and postmaster.pid != signalled:
                end_postmaster(postmaster)
                signalled = postmaster.pid
            self._wait(began, STOP_SECONDS)

    def _wait(self, began: float, seconds: float) -> None:
        if find_postmaster(self._files.data) is None:
            seconds = LEFTOVER_SECONDS
            if self._files.data.exists():
                end_orphans(self._files.data)
        if time.monotonic() - began > seconds:
            raise EmbeddedPostgresError(
                f"the embedded Postgres in {self._files.data} did not start or stop within {seconds} seconds (its "
                f"processes may run on another machine or in a container); find them with "
                f"`fuser '{self._files.alive_lock}'`, read {self._files.log} and try again"
            )
        time.sleep(POLL_SECONDS)

    def _reach(self, postmaster: Postmaster) -> Reach:
        password = self._files.read_password()
        return reach_loopback(port=postmaster.port, user=ROLE, password=password, database=DATABASE)

    def _url(self, postmaster: Postmaster) -> str:
        password = quote(self._files.read_password(), safe="")
        return f"postgresql://{ROLE}:{password}@{LOOPBACK}:{postmaster.port}/{DATABASE}"

    @contextlib.contextmanager
    def _os_errors_explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EmbeddedPostgresError(
                f"the embedded Postgres in {self._files.home} cannot be used ({error.strerror}: "
                f"{error.filename or 'no file named'}); grant this user access, free disk space, "
                f"or set ODF_HOME to another folder"
            ) from error
