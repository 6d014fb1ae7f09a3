"""The files of the embedded Postgres in ODF_HOME.

    postgres/           the data folder, owned by the user that the server runs as
    postgres.new-*/     an incomplete data folder, renamed into place when initdb has finished
    postgres.password   0600, the password of the role `odf`
    postgres.log        0600, the server's log
    postgres.lock       locked by the process that starts or stops the server
    postgres.alive      locked by the server itself: the postmaster and its children inherit the lock, so the kernel
                        releases it exactly when the last of them has ended, however it ended

A pid file can be wrong (kill -9, a reboot, a reused pid, another container); `postgres.alive` cannot.
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

from ..model.errors import EmbeddedPostgresError

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
        """An existing home keeps its mode. One that root creates can be traversed by the server's group."""
        if self.home.is_dir():
            return
        self.home.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.home.mkdir(mode=0o700)
            if server_group is not None:
                os.chown(self.home, -1, server_group)
                self.home.chmod(0o710)

    def sweep(self) -> None:
        """Remove incomplete data folders. An initdb that is still writing is removed next time."""
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
                f"restore it, or move {self.data} away to start with an empty database"
            )
        return password

    def make_password(self) -> str:
        """Called before initdb, so that a data folder always has its password. The file is replaced atomically."""
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
        self.rotate_log()
        return self._open_private(self.log, os.O_WRONLY | os.O_APPEND)

    def rotate_log(self) -> None:
        """Copies and empties a log that has become too large. The server appends, so it goes on in the same file.

        Every process that attaches does this, so there are at most two files of about LOG_KEPT_BYTES.
        """
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size <= LOG_KEPT_BYTES:
                return
            old = self._open_private(self.log.with_name("postgres.log.1"), os.O_WRONLY | os.O_TRUNC)
            with self.log.open("rb") as log, os.fdopen(old, "wb") as copy:
                # What is older than that is dropped: the server may have written much since somebody last looked.
                log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_KEPT_BYTES))
                shutil.copyfileobj(log, copy)
            os.truncate(self.log, 0)

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
                # Closing is not enough: a child that another thread forked may have a copy of `lock`.
                fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            os.close(lock)

    def take_alive_lock(self) -> int | None:
        """The lock for a new server to inherit, or None while a process of the last one is alive."""
        lock = self._open_private(self.alive_lock, os.O_RDWR)
        if _locked(lock, fcntl.LOCK_EX):
            return lock
        os.close(lock)
        return None

    def is_server_alive(self) -> bool:
        try:
            lock = os.open(self.alive_lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            return not _locked(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)

    def _open_private(self, path: Path, flags: int) -> int:
        """0600, owned by the owner of the home: what `sudo odf` creates stays usable for the project's user."""
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
