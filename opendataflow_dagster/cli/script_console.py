"""Shows the output of scripts while they run: stdout on stdout, stderr on stderr, prefixed when several run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Lock

from opendataflow_dagster.scripts.output import Screen
from opendataflow_dagster.scripts.process import write_patiently

# A longer unfinished line is shown in pieces.
_MAX_HELD = 8192


class ScriptConsole:
    """Our stdout and stderr, shared by the scripts that run at the same time."""

    def __init__(self, *, only_stderr: bool) -> None:
        self._only_stderr = only_stderr
        self._lock = Lock()

    def plain(self) -> Screen:
        return self._write

    def prefixed(self, name: str) -> Screen:
        """Whole lines, each prefixed with the name."""
        prefix = f"{name} | ".encode()
        held = {False: b"", True: b""}

        def show(data: bytes, is_error: bool, tick: Callable[[], object]) -> None:
            *lines, held[is_error] = (held[is_error] + data).split(b"\n")
            if held[is_error] and (not data or len(held[is_error]) > _MAX_HELD):
                lines.append(held[is_error])
                held[is_error] = b""
            if lines:
                self._write(b"".join(prefix + line + b"\n" for line in lines), is_error, tick)

        return show

    def _write(self, data: bytes, is_error: bool, tick: Callable[[], object]) -> None:
        stream = sys.stderr if is_error or self._only_stderr else sys.stdout
        while not self._lock.acquire(timeout=0.1):
            if tick():
                return
        try:
            stream.flush()
            try:
                descriptor = stream.fileno()
            except (OSError, ValueError):  # not a file: a test, or an embedding program
                stream.buffer.write(data)
            else:
                write_patiently(descriptor, data, tick)
        finally:
            self._lock.release()
