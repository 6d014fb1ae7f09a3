"""The embedded Postgres: one real server per ODF_HOME, started on first use and shared by every process.

    start   attach when it answers; otherwise, alone (postgres.lock): launch while no process of it lives,
            wait while one does, until it answers
    stop    a fast shutdown, until the last process is gone

It outlives its starter. `embedded_files` says how we know that it lives, `embedded_user` as whom it runs,
`embedded_cluster` how its data folder is made, `embedded_process` which processes are its own.
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

from opendataflow_dagster.model.errors import EmbeddedPostgresError

from .embedded_cluster import INITDB_SECONDS, ROLE, make_data_folder, program, refuse_a_foreign_folder, version_of
from .embedded_files import POLL_SECONDS, HomeFiles
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
from .reach import LOOPBACK, Outcome, Reach, create_database, reach_loopback

DATABASE = "opendataflow"

#: A postmaster that lives may be replaying the log after a crash: minutes, not seconds.
START_SECONDS = 300
#: Processes without a postmaster are told to end, and have no reason to stay.
LEFTOVER_SECONDS = 30
STOP_SECONDS = 60
#: Longer than any holder's own patience.
LOCK_SECONDS = INITDB_SECONDS + START_SECONDS + LEFTOVER_SECONDS

PORT_TAKEN = "Address already in use"
STILL_IN_USE = "pre-existing shared memory block"
READY_LINE = "ready to accept connections"
TOLD_TO_CLIENTS = "the database system is "
LAUNCHES_WITHOUT_A_REASON = 5


@dataclass(frozen=True, kw_only=True)
class EmbeddedStatus:
    """`running` says that the server is there; `problem` why it is of no use all the same."""

    running: bool
    pid: int | None
    port: int | None
    version: str | None
    data: Path
    log: Path
    problem: str | None


class EmbeddedPostgres:
    def __init__(self, home: Path) -> None:
        # One spelling for one home: the lock, the messages and `ps` agree whatever the caller wrote.
        self._files = HomeFiles(home=home.expanduser().resolve())

    def start(self) -> str:
        with self._explained():
            refuse_a_foreign_folder(self._files.data)
            return self._attach() or self._start_alone()

    def url(self) -> str:
        with self._explained():
            postmaster = find_postmaster(self._files.data)
            if postmaster is None:
                raise EmbeddedPostgresError(
                    f"the embedded Postgres in {self._files.home} is not running; run `odf db start`"
                )
            return self._url(postmaster)

    def stop(self) -> bool:
        """True when there was something to stop."""
        with self._explained():
            if not self._files.a_server_process_lives():
                return False
            with self._files.start_locked(LOCK_SECONDS):
                self._end_every_process()
            return True

    def status(self) -> EmbeddedStatus:
        with self._explained():
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

    def _attach(self) -> str | None:
        """The url when the server lets us in; None when it is not (yet) there."""
        postmaster = find_postmaster(self._files.data)
        if postmaster is None or not postmaster.ready:
            return None
        reach = self._reach(postmaster)
        match reach.outcome:
            case Outcome.READY:
                return self._url(postmaster)
            case Outcome.SILENT:
                return None
            case Outcome.NO_DATABASE:
                password = self._files.read_password()
                made = create_database(port=postmaster.port, user=ROLE, password=password, database=DATABASE)
                if made.outcome is Outcome.READY:
                    return self._url(postmaster)
                if find_postmaster(self._files.data) is None:
                    return None  # killed meanwhile
                raise EmbeddedPostgresError(
                    f"the embedded Postgres cannot create its database {DATABASE}: {made.reason}; "
                    f"read {self._files.log}, remove the cause and try again"
                )
            case Outcome.WRONG_PASSWORD:
                raise EmbeddedPostgresError(
                    f"the embedded Postgres refuses the password in {self._files.password}; put back the one "
                    f"that it was made with, or stop it (`odf db stop`) and move {self._files.data} away "
                    f"to begin with an empty database"
                )
            case _:
                assert_never(reach.outcome)

    def _start_alone(self) -> str:
        user = server_user(self._files.home, self._files.data)
        self._files.make_home(user.gid)
        with self._files.start_locked(LOCK_SECONDS):
            refuse_a_foreign_folder(self._files.data)
            # Another starter may have made the data folder, and so have chosen the user, while we waited.
            user = server_user(self._files.home, self._files.data)
            launches: list[int] = []  # where the log of each begins
            began, port = time.monotonic(), last_port(self._files.data)
            while (url := self._attach()) is None:
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
                        began = time.monotonic()  # initdb has its own patience
                self._wait(began, START_SECONDS)
            return url

    def _launch(self, user: ServerUser, port: int, alive_lock: int) -> int:
        """Where the log of this launch begins."""
        self._files.sweep()
        user = user.passing(self._files.home, program("postgres"))
        if version_of(self._files.data) is None:
            make_data_folder(self._files, user)
        self._files.read_password()  # without it the server would run and let nobody in
        log = self._files.open_log()
        try:
            begins = os.fstat(log).st_size
            launch_postmaster(self._files, user, port=port, log=log, alive_lock=alive_lock)
        finally:
            os.close(log)
        return begins

    def _port_after_failure(self, launches: list[int], port: int | None) -> int | None:
        """The port for the next launch, when one more can help."""
        with self._files.log.open("rb") as log:
            log.seek(launches[-1])
            lines = log.read().decode(errors="replace").strip().splitlines()
        if any(PORT_TAKEN in line for line in lines):
            return None
        if any(STILL_IN_USE in line for line in lines):
            return port
        killed_later = any(READY_LINE in line for line in lines)
        grave = [] if killed_later else [part for line in lines for part in re.findall(r"(?:FATAL|PANIC): +(.*)", line)]
        reasons = [reason for reason in grave if not reason.startswith(TOLD_TO_CLIENTS)]
        if not reasons and len(launches) < LAUNCHES_WITHOUT_A_REASON:
            return port  # a server that was killed gives no reason
        reasons = reasons or lines[-1:]
        raise EmbeddedPostgresError(
            f"the embedded Postgres in {self._files.data} ended while it was starting: "
            f"{'; '.join(reasons) or 'it gave no reason'}; read {self._files.log}, remove the cause "
            f"and try again"
        )

    def _end_every_process(self) -> None:
        began, told = time.monotonic(), None
        while self._files.a_server_process_lives():
            postmaster = find_postmaster(self._files.data)
            if postmaster is not None and postmaster.pid != told:
                end_postmaster(postmaster)
                told = postmaster.pid
            self._wait(began, STOP_SECONDS)

    def _wait(self, began: float, seconds: float) -> None:
        if find_postmaster(self._files.data) is None:
            seconds = LEFTOVER_SECONDS
            if self._files.data.exists():
                end_orphans(self._files.data)
        if time.monotonic() - began > seconds:
            raise EmbeddedPostgresError(
                f"the processes of the embedded Postgres in {self._files.data} did not come up or end within "
                f"{seconds} seconds (another machine or container may run them); find them with "
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
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EmbeddedPostgresError(
                f"the embedded Postgres in {self._files.home} cannot be used ({error.strerror}: "
                f"{error.filename or 'no file named'}); give this user access to it, free space on its disk, "
                f"or set ODF_HOME to another folder"
            ) from error
