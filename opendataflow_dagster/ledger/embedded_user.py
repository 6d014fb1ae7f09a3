"""The user that the server runs as. Postgres refuses to run as root, so root uses a user who owns nothing else.

That user must reach the data folder and the binaries. We do not change the mode of folders that we did not create; if a
parent is closed to the user (ODF_HOME or the virtual environment under /root), the server's processes keep the one
capability that lets them pass, and no other.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..model.errors import EmbeddedPostgresError

DEDICATED_USER = "odf-postgres"
LAST_RESORT_USER = "nobody"

#: The weakest first: traverse folders and read; then also execute files that root installed with umask 077.
CAPABILITIES = ("dac_read_search", "dac_override")

#: The environment of the starter may contain secrets and PG* settings, which the server must not inherit.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}


@dataclass(frozen=True, kw_only=True)
class ServerUser:
    """`uid` and `gid` are None if the server runs as the current user."""

    uid: int | None = None
    gid: int | None = None
    capability: str | None = None

    def run(self, command: Sequence[str], *, stdin: IO[bytes], seconds: float) -> subprocess.CompletedProcess[str]:
        uid, gid, groups = self._popen_identity()
        try:
            return subprocess.run(
                [*self._setpriv(), *command],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
                cwd="/",
                env=ENVIRONMENT,
                user=uid,
                group=gid,
                extra_groups=groups,
            )
        except subprocess.TimeoutExpired:
            raise EmbeddedPostgresError(
                f"{command[0]} did not finish in {seconds:.0f} seconds; "
                f"set ODF_HOME to a folder on a faster disk and try again"
            ) from None

    def launch(self, command: Sequence[str], *, log: int, inherited: int) -> None:
        """Start it in the background: the shell exits at once, so the server is neither our child nor our zombie."""
        uid, gid, groups = self._popen_identity()
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *self._setpriv(), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,  # a failure is in the log, and nothing holds the inherited lock
            cwd="/",
            env=ENVIRONMENT,
            pass_fds=(inherited,),
            start_new_session=True,
            user=uid,
            group=gid,
            extra_groups=groups,
        )

    def passing(self, home: Path, program: Path) -> ServerUser:
        """This user with the weakest capability that lets it enter `home` and run `program`."""
        if self.uid is None:
            return self
        capabilities = (None, *CAPABILITIES) if shutil.which("setpriv", path=os.defpath) else (None,)
        for capability in capabilities:
            candidate = ServerUser(uid=self.uid, gid=self.gid, capability=capability)
            attempt = ["/bin/sh", "-c", 'cd "$1" && exec "$2" --version', "sh", str(home), str(program)]
            with Path(os.devnull).open("rb") as nothing:
                if candidate.run(attempt, stdin=nothing, seconds=30).returncode == 0:
                    return candidate
        raise EmbeddedPostgresError(
            f"the embedded Postgres runs as user id {self.uid}, who cannot enter {home} or run {program}; "
            f"move ODF_HOME and the virtual environment where that user has access, or set ODF_DATABASE_URL"
        )

    def _popen_identity(self) -> tuple[int | None, int | None, list[int] | None]:
        if self.uid is None or self.capability is not None:
            return None, None, None
        return self.uid, self.gid, []

    def _setpriv(self) -> list[str]:
        if self.capability is None:
            return []
        return [
            "setpriv",
            f"--reuid={self.uid}",
            f"--regid={self.gid}",
            "--clear-groups",
            f"--inh-caps=-all,+{self.capability}",
            f"--ambient-caps=-all,+{self.capability}",
            # Without it access(2), which Postgres calls on its own program, ignores capabilities.
            "--securebits=+no_setuid_fixup",
            "--no-new-privs",
        ]


def server_user(home: Path, data: Path) -> ServerUser:
    """The owner of the data folder, or of the home if there is none yet; the dedicated user instead of root."""
    current = os.geteuid()
    owner = next((folder.stat() for folder in (data, home) if folder.exists()), None)
    if current != 0:
        if data.exists() and owner is not None and owner.st_uid != current:
            raise EmbeddedPostgresError(
                f"the data folder {data} belongs to user id {owner.st_uid}, not to you ({current}); "
                f"run as that user, or set ODF_HOME to a folder of your own"
            )
        return ServerUser()
    if owner is not None and owner.st_uid != 0:
        return ServerUser(uid=owner.st_uid, gid=owner.st_gid)
    dedicated = _dedicated_user()
    if data.exists() and any(data.iterdir()):
        raise EmbeddedPostgresError(
            f"the data folder {data} belongs to root, and Postgres refuses to run as root; "
            f"change its owner with `chown -R {dedicated.pw_name} '{data}'` and try again"
        )
    return ServerUser(uid=dedicated.pw_uid, gid=dedicated.pw_gid)


def _dedicated_user() -> pwd.struct_passwd:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(DEDICATED_USER)
    if useradd := shutil.which("useradd", path=f"{os.defpath}:/usr/sbin:/sbin"):
        new = [useradd, "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
        # If it fails (read-only /etc, or another starter was first), the next lookup shows it.
        subprocess.run([*new, "--shell", "/usr/sbin/nologin", DEDICATED_USER], capture_output=True, check=False)
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(DEDICATED_USER)
    return pwd.getpwnam(LAST_RESORT_USER)
