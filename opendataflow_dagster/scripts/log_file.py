"""Opens the log of a script so that only its owner can read it and nobody can lead it elsewhere."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


def open_log(logs: Path, path: Path) -> int:
    """A new file below `logs`. No symlink below `logs` is followed; modes do not depend on the umask."""
    *folders, name = path.relative_to(logs).parts
    _make_private(logs)
    folder = os.open(logs, _FOLDER)
    try:
        for part in folders:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=folder)
                os.chmod(part, 0o700, dir_fd=folder)
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
            os.fchmod(folder, 0o700)
        # Whatever is there, such as a pipe or another name of a file, is not written to.
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
    os.fchmod(opened, 0o600)
    return opened


def _make_private(logs: Path) -> None:
    logs.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        logs.mkdir(mode=0o700)
        logs.chmod(0o700)
