"""The output of a script: shown while it runs, kept in a log file, its last line used as the reason of a failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import Final, TypeAlias

from .log_file import open_log

#: Shows output: the bytes (none at the end), whether they are of stderr, and a function to call while the reader is
#: slow, whose true result means that it is time to end.
Screen: TypeAlias = Callable[[bytes, bool, Callable[[], object]], None]

_MASK: Final = b"***"
# Masking a password of three letters would make every text unreadable.
_MIN_SECRET_BYTES: Final = 4
_TAIL_BYTES: Final = 4096
_MAX_LAST_LINE: Final = 300


class ScriptOutput:
    """Keeps no more than a buffer in memory. The script's passwords are masked in the log and on the screen."""

    def __init__(
        self, logs: Path, path: Path, screen: Screen | None, secrets: Sequence[str], tick: Callable[[], object]
    ) -> None:
        self._logs = logs
        self.path = path
        self._screen = screen
        self._tick = tick
        self._masks = (_Mask(secrets), _Mask(secrets))
        self._tails = [b"", b""]
        self._file: FileIO | None = None
        self._lost: OSError | None = None

    @property
    def kept(self) -> Path | None:
        """The log file; None if the script printed nothing."""
        return self.path if self._file is not None else None

    def take(self, data: bytes, is_error: bool) -> None:
        self._pass_on(self._masks[is_error].feed(data), is_error)

    def close(self) -> None:
        for is_error in (False, True):
            self._pass_on(self._masks[is_error].rest(), is_error)
            self._show(b"", is_error)
        if self._file is not None:
            self._file.close()

    def last_line(self) -> str:
        """The last line of stderr, or if there is none, of stdout."""
        for tail in reversed(self._tails):
            lines = [line.strip() for line in tail.decode(errors="replace").split("\n") if line.strip()]
            if lines:
                return lines[-1][:_MAX_LAST_LINE]
        return ""

    def _pass_on(self, data: bytes, is_error: bool) -> None:
        if not data:
            return
        self._tails[is_error] = (self._tails[is_error] + data)[-_TAIL_BYTES:]
        self._keep(data)
        self._show(data, is_error)

    def _show(self, data: bytes, is_error: bool) -> None:
        if self._screen is not None:
            try:
                self._screen(data, is_error, self._tick)
            except OSError:
                self._screen = None  # the reader is gone; the script continues

    def _keep(self, data: bytes) -> None:
        if self._lost is not None:
            return
        try:
            if self._file is None:
                self._file = FileIO(open_log(self._logs, self.path), "w")
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            # A full log disk must not fail the work.
            self._lost = error
            self._show(f"odf: the output is no longer logged: {self.path}: {error.strerror}\n".encode(), True)


class _Mask:
    """Masks secrets in a stream, also when split between reads; holds back only a possible start of one."""

    def __init__(self, secrets: Sequence[str]) -> None:
        encoded = {secret.encode() for secret in secrets}
        self._secrets = sorted((text for text in encoded if len(text) >= _MIN_SECRET_BYTES), key=len, reverse=True)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        if not self._secrets:
            return data
        data = self._held + data
        for secret in self._secrets:
            data = data.replace(secret, _MASK)
        held = max((_length_of_start(secret, data) for secret in self._secrets), default=0)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def rest(self) -> bytes:
        held, self._held = self._held, b""
        return held


def _length_of_start(secret: bytes, data: bytes) -> int:
    """How many bytes at the end of the data are the start of the secret."""
    longest = min(len(secret) - 1, len(data))
    return next((size for size in range(longest, 0, -1) if data.endswith(secret[:size])), 0)
