"""Where the passphrase comes from: a variable, a file that nobody else can read, or a command such as a vault's."""

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

#: Everything that holds the passphrase or leads to it; no script gets these. RunJob of upstream exports `passkey`.
VARIABLES: Final = frozenset(
    {UPSTREAM_VARIABLE, UPSTREAM_VARIABLE.lower()}
    | {f"{name}{suffix}" for name in (VARIABLE, NEW_VARIABLE) for suffix in ("", "_FILE", "_COMMAND")}
)

_COMMAND_SECONDS = 60


def passphrase() -> str:
    """SecretUnreadable says how to give one."""
    found = find(VARIABLE) or _from_variable(UPSTREAM_VARIABLE)
    if not found:
        raise SecretUnreadable(
            f"there is no passphrase to read stored passwords with; set {VARIABLE} (or {UPSTREAM_VARIABLE}), "
            f"{VARIABLE}_FILE or {VARIABLE}_COMMAND"
        )
    return found


def find(variable: str) -> str | None:
    """From VARIABLE, VARIABLE_FILE or VARIABLE_COMMAND, the first that is set."""
    if value := _from_variable(variable):
        return value
    if path := os.environ.get(f"{variable}_FILE"):
        return _from_file(f"{variable}_FILE", Path(path).expanduser())
    if command := os.environ.get(f"{variable}_COMMAND"):
        return _from_command(f"{variable}_COMMAND", command)
    return None


def _from_variable(variable: str) -> str | None:
    found = os.environb.get(variable.encode())
    return _text(variable, found) if found else None


def _from_file(variable: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise InvalidInput(
                    f"{path} ({variable}) can be read by others; run: chmod 600 {shlex.quote(str(path))}"
                )
            return _one_line(variable, file.read())
    except OSError as error:
        raise InvalidInput(f"{path} ({variable}) cannot be read ({error.strerror}); correct the path") from None


def _from_command(variable: str, command: str) -> str:
    """No shell: the words of the command are its arguments. What it says on stderr goes to the person."""
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise InvalidInput(f"the command in {variable} does not run ({type(error).__name__}); correct it") from None
    if done.returncode:
        raise InvalidInput(f"the command in {variable} ended with {done.returncode}; run it by hand to see why")
    return _one_line(variable, done.stdout)


def _one_line(variable: str, given: bytes) -> str:
    found = _text(variable, given).removesuffix("\n").removesuffix("\r")
    if not found or "\n" in found or "\0" in found:
        raise InvalidInput(f"{variable} gives no passphrase of one line; let it give exactly that")
    return found


def _text(variable: str, given: bytes) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{variable} gives no passphrase in UTF-8; let it give one") from None
