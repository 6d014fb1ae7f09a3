"""What a script prints: shown while it runs, kept in a file, and its last words for the reason of a failure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import Final, TypeAlias

#: Shows output: the bytes (none at the end), whether they came on stderr, and what to call while the reader is slow; it
#: says something when it is time to end.
Screen: TypeAlias = Callable[[bytes, bool, Callable[[], object]], None]

_MASK: Final = b"***"
# A password of three letters would blacken every text.
_MIN_SECRET_BYTES: Final = 4
_TAIL_BYTES: Final = 4096
_MAX_LAST_LINE: Final = 300


class ScriptOutput:
    """Never more than a buffer in memory. The script's own passwords are masked, here and on the screen."""

    def __init__(self, path: Path, screen: Screen | None, secrets: Sequence[str], tick: Callable[[], object]) -> None:
        self.path = path
        self._screen = screen
        self._tick = tick
        self._masks = (_Mask(secrets), _Mask(secrets))
        self._tails = [b"", b""]
        self._file: FileIO | None = None
        self._lost: OSError | None = None

    @property
    def kept(self) -> Path | None:
        """The file; a script that prints nothing has none."""
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
        """What the script complained about last; without a complaint, what it said last."""
        for tail in reversed(self._tails):
            if lines := tail.decode(errors="replace").split("\n"):
                said = [line.strip() for line in lines if line.strip()]
                if said:
                    return said[-1][:_MAX_LAST_LINE]
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
                self._screen = None  # nobody looks any more; the work goes on

    def _keep(self, data: bytes) -> None:
        if self._lost is not None:
            return
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = FileIO(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w")
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            # A full disk of logs must not fail the work itself.
            self._lost = error
            self._show(f"odf: the output is not kept any more: {self.path}: {error.strerror}\n".encode(), True)


class _Mask:
    """Replaces secrets in a stream, also where one is cut in two; holds back only what may be the begin of one."""

    def __init__(self, secrets: Sequence[str]) -> None:
        found = {one.encode() for one in secrets}
        self._secrets = sorted((one for one in found if len(one) >= _MIN_SECRET_BYTES), key=len, reverse=True)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        if not self._secrets:
            return data
        data = self._held + data
        for secret in self._secrets:
            data = data.replace(secret, _MASK)
        held = max((_begin_of(secret, data) for secret in self._secrets), default=0)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def rest(self) -> bytes:
        held, self._held = self._held, b""
        return held


def _begin_of(secret: bytes, data: bytes) -> int:
    """How many bytes at the end of the data are the begin of the secret."""
    longest = min(len(secret) - 1, len(data))
    return next((size for size in range(longest, 0, -1) if data.endswith(secret[:size])), 0)
