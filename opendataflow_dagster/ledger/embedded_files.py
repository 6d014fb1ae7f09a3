"""What the embedded Postgres keeps in ODF_HOME, and who may read it.

    postgres/           the data folder, owned by the user that the server runs as
    postgres.new-*/     a data folder in the making; renamed into place when it is whole
    postgres.password   0600, the password of the role `odf`
    postgres.log        0600, what the server says
    postgres.lock       held by whoever starts or stops the server, for as long as that takes
    postgres.alive      held by the server itself: the lock is inherited by the postmaster and its children,
                        so the kernel frees it exactly when the last of them is gone, however they ended

A pid file can lie (kill -9, a reboot, a pid used again, another container); `postgres.alive` cannot.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opendataflow_dagster.model.errors import EmbeddedPostgresError

POLL_SECONDS = 0.02
LOG_KEPT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class HomeFiles:
    home: Path

    @property
    def data(self) -> Path:
        return self.home / "postgres"

    @property
    def password(self) -> Path:
        return self.home / "postgres.password"

    @property
    def log(self) -> Path:
        return self.home / "postgres.log"

    @property
    def start_lock(self) -> Path:
        return self.home / "postgres.lock"

    @property
    def alive_lock(self) -> Path:
        return self.home / "postgres.alive"

    def make_home(self, server_group: int | None) -> None:
        """A home that is already there keeps its mode. As root the server's group may pass through ours."""
        if self.home.is_dir():
            return
        self.home.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.home.mkdir(mode=0o700)
            if server_group is not None:
                os.chown(self.home, -1, server_group)
                self.home.chmod(0o710)

    def sweep(self) -> None:
        """An initdb whose starter was killed may still be writing: what cannot go now goes next time."""
        for unfinished in self.home.glob("postgres.new-*"):
            shutil.rmtree(unfinished, ignore_errors=True)

    def read_password(self) -> str:
        try:
            password = self.password.read_text().strip()
        except FileNotFoundError:
            password = ""
        if not password:
            raise EmbeddedPostgresError(
                f"the password file {self.password} of the embedded Postgres is missing or empty; "
                f"put it back, or move {self.data} away to begin with an empty database"
            )
        return password

    def make_password(self) -> str:
        """Before the data folder, so that a data folder always has its password. Replaced whole or not."""
        if self.password.exists() and self.password.stat().st_size:
            return self.read_password()
        password = secrets.token_urlsafe(32)
        new = self.password.with_name("postgres.password.new")
        new.unlink(missing_ok=True)
        with os.fdopen(self._open_private(new, os.O_WRONLY), "w") as file:
            file.write(password + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.password)
        return password

    def open_log(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_KEPT_BYTES:
                self.log.replace(self.log.with_name("postgres.log.1"))
        return self._open_private(self.log, os.O_WRONLY | os.O_APPEND)

    @contextlib.contextmanager
    def start_locked(self, patience: float) -> Iterator[None]:
        lock = self._open_private(self.start_lock, os.O_RDWR)
        try:
            deadline = time.monotonic() + patience
            while not _locked(lock, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise EmbeddedPostgresError(
                        f"another process has held {self.start_lock} for {patience:.0f} seconds; "
                        f"find it with `fuser '{self.start_lock}'`, end it and try again"
                    )
                time.sleep(POLL_SECONDS)
            try:
                yield
            finally:
                # Not by close alone: a child forked meanwhile by another thread has a copy of `lock`.
                fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            os.close(lock)

    def take_alive_lock(self) -> int | None:
        """The lock to hand to a new server, or None while a process of the last one lives."""
        lock = self._open_private(self.alive_lock, os.O_RDWR)
        if _locked(lock, fcntl.LOCK_EX):
            return lock
        os.close(lock)
        return None

    def a_server_process_lives(self) -> bool:
        try:
            lock = os.open(self.alive_lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            return not _locked(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)

    def _open_private(self, path: Path, flags: int) -> int:
        """0600, for the owner of the home: what `sudo odf` makes stays usable for the project's user."""
        flags |= os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(path, flags)
        if os.geteuid() == 0:
            os.fchown(file, self.home.stat().st_uid, -1)
        return file


def _locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
