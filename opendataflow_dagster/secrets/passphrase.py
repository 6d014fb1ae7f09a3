"""The passphrase, from an environment variable, a private file, or a command such as a vault client."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Final

from ..model.errors import InvalidInput, SecretUnreadable

VARIABLE: Final = "ODF_PASSPHRASE"
NEW_VARIABLE: Final = "ODF_NEW_PASSPHRASE"
UPSTREAM_VARIABLE: Final = "PASSKEY"

#: Contain the passphrase or lead to it, so scripts do not inherit them. Upstream's RunJob exports `passkey`.
VARIABLES: Final = frozenset(
    {UPSTREAM_VARIABLE, UPSTREAM_VARIABLE.lower()}
    | {f"{name}{suffix}" for name in (VARIABLE, NEW_VARIABLE) for suffix in ("", "_FILE", "_COMMAND")}
)

_COMMAND_SECONDS = 60


def passphrase() -> str:
    """Raises SecretUnreadable if none is configured."""
    phrase = find(VARIABLE) or _from_variable(UPSTREAM_VARIABLE)
    if not phrase:
        raise SecretUnreadable(
            f"stored passwords cannot be read without a passphrase; set {VARIABLE} (or {UPSTREAM_VARIABLE}), "
            f"{VARIABLE}_FILE or {VARIABLE}_COMMAND"
        )
    return phrase


def find(variable: str) -> str | None:
    """From `variable`, `variable`_FILE or `variable`_COMMAND, the first that is set."""
    if value := _from_variable(variable):
        return value
    if path := os.environ.get(f"{variable}_FILE"):
        return _from_file(f"{variable}_FILE", Path(path).expanduser())
    if command := os.environ.get(f"{variable}_COMMAND"):
        return _from_command(f"{variable}_COMMAND", command)
    return None


def _from_variable(variable: str) -> str | None:
    value = os.environb.get(variable.encode())
    return _text(variable, value) if value else None


def _from_file(variable: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise InvalidInput(
                    f"{path} ({variable}) is readable by other users; run: chmod 600 {shlex.quote(str(path))}"
                )
            return _one_line(variable, file.read())
    except OSError as error:
        raise InvalidInput(f"{path} ({variable}) cannot be read ({error.strerror}); correct the path") from None


def _from_command(variable: str, command: str) -> str:
    """Runs without a shell. Its stderr goes to the user."""
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise InvalidInput(f"the command in {variable} cannot run ({type(error).__name__}); correct it") from None
    if done.returncode:
        raise InvalidInput(
            f"the command in {variable} failed with exit code {done.returncode}; run it by hand to see why"
        )
    return _one_line(variable, done.stdout)


def _one_line(variable: str, given: bytes) -> str:
    line = _text(variable, given).removesuffix("\n").removesuffix("\r")
    if not line or "\n" in line or "\0" in line:
        raise InvalidInput(f"{variable} must contain or print the passphrase as exactly one line; correct it")
    return line


def _text(variable: str, given: bytes) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"the passphrase of {variable} is not UTF-8 text; encode it as UTF-8") from None
