"""The server's processes: finding, launching and ending them, and their port.

A process is ours if its `cluster_name` is that of the data folder, which contains the folder's inode. Unlike a pid, an
inode is not reused while the folder exists; unlike a path, it stays right for a folder that was moved or copied.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from .embedded_cluster import program
from .embedded_files import HomeFiles
from .embedded_user import ServerUser
from .reach import LOOPBACK

PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class Postmaster:
    pid: int
    port: int
    ready: bool


def find_postmaster(data: Path) -> Postmaster | None:
    """The live postmaster of this data folder, as described in postmaster.pid."""
    postmaster = _read_pid_file(data)
    return postmaster if postmaster and _is_postmaster_of(postmaster.pid, data) else None


def launch_postmaster(files: HomeFiles, user: ServerUser, *, port: int, log: int, alive_lock: int) -> None:
    settings = {
        "listen_addresses": LOOPBACK,
        "port": str(port),
        "unix_socket_directories": "",
        "cluster_name": cluster_name(files.data),
        "password_encryption": "scram-sha-256",
        "lc_messages": "C",
    }
    # On the command line they override postgresql.conf and ALTER SYSTEM.
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    _remove_foreign_pid_file(files.data)
    user.launch([str(program("postgres")), "-D", str(files.data), *options], log=log, inherited=alive_lock)


def end_postmaster(postmaster: Postmaster) -> None:
    """A fast shutdown: clients are disconnected, their transactions rolled back, and a checkpoint is written."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(postmaster.pid, signal.SIGINT)


def end_orphans(data: Path) -> None:
    """End backends that outlived a killed postmaster; one in a long query would keep the data folder in use."""
    title = f"postgres: {cluster_name(data)}: ".encode()
    for folder in PROC.glob("[0-9]*"):
        if b"".join(_arguments(int(folder.name))[:1]).startswith(title):
            with contextlib.suppress(OSError):
                parent = re.search(r"^PPid:\s+(\d+)$", (folder / "status").read_text(), re.MULTILINE)
                if parent and not _is_postmaster_of(int(parent[1]), data):
                    os.kill(int(folder.name), signal.SIGQUIT)


def cluster_name(data: Path) -> str:
    folder = data.stat()
    return f"odf-{folder.st_dev:x}-{folder.st_ino:x}"


def last_port(data: Path) -> int | None:
    """The port of the last run, from Postgres's own record, so that URLs stay valid after a restart."""
    with contextlib.suppress(FileNotFoundError):
        if port := re.search(r'"port=(\d+)"', (data / "postmaster.opts").read_text()):
            return int(port[1])
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _read_pid_file(data: Path) -> Postmaster | None:
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        return Postmaster(pid=int(lines[0]), port=int(lines[3]), ready=lines[7].strip() == "ready")
    except (FileNotFoundError, NotADirectoryError, ValueError, IndexError):
        return None  # missing or incomplete


def _remove_foreign_pid_file(data: Path) -> None:
    """Postgres refuses to start if any process has the pid in an old file, even an unrelated one.

    A dead pid, and a live postmaster of this folder, are left for Postgres to handle.
    """
    file = data / "postmaster.pid"
    with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
        pid = int(file.read_text().splitlines()[0])
        if _exists(pid) and not _is_postmaster_of(pid, data):
            file.unlink()


def _is_postmaster_of(pid: int, data: Path) -> bool:
    if not PROC.joinpath("self").exists():
        return _exists(pid)  # no /proc (macOS): only the pid file is left
    return f"cluster_name={cluster_name(data)}".encode() in _arguments(pid)


def _arguments(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
