"""Runs a child process in its own session, reads its output, and ends its whole process group.

No shell is involved: the command is a list of words, and values reach the child only through its environment.
"""

from __future__ import annotations

import errno
import math
import os
import select
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, TypeAlias

#: Receives output, and whether it is of stderr.
Sink: TypeAlias = Callable[[bytes, bool], None]
#: Called every second or more often. A text ends the child, for that reason.
Tick: TypeAlias = Callable[[], str | None]

ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_OTHER_SIGNALS: Final = (signal.SIGUSR1, signal.SIGUSR2)

_TICK_SECONDS = 1.0
# While the reader of our output is slow, signals and timeouts must still be noticed.
_SLOW_READER_SECONDS = 0.1
_READ_BYTES = 65_536
# How long background helpers of an ended script (a `tee`, for example) may still write.
_LINGER_SECONDS = 1.0
_HAS_PIDFD: Final = hasattr(os, "pidfd_open")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    #: Its exit code; negative: the signal that killed it.
    code: int
    #: Why we ended it. None: it ended by itself, or by a signal that was forwarded to it.
    ended_for: str | None


class Stop:
    """Forwards the signals that this process receives to all of its children, and remembers the first."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._groups: set[int] = set()

    def get(self, number: int, _: FrameType | None = None) -> None:
        if number in ENDING_SIGNALS:
            # A second signal skips the grace period.
            forwarded = signal.SIGKILL if self.signal is not None else number
            self.signal = self.signal or number
        else:
            forwarded = number
        for group in tuple(self._groups):
            _signal_group(group, forwarded)

    @contextmanager
    def of(self, group: int) -> Iterator[None]:
        self._groups.add(group)
        try:
            if self.signal is not None:  # it came while the child was started
                _signal_group(group, self.signal)
            yield
        finally:
            self._groups.discard(group)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Only in the main thread, where Python delivers signals. Ignored signals (`nohup`) stay ignored."""
        numbers = (*ENDING_SIGNALS, *_OTHER_SIGNALS)
        handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self.get) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run_process(
    command: Sequence[str],
    *,
    environment: Mapping[bytes, bytes],
    sink: Sink,
    tick: Tick,
    stop: Stop,
    grace: float,
    tick_seconds: float = 1.0,
) -> Ended:
    """Run the command until it and its group have ended. OSError: it could not be started."""
    child = _start(command, environment)
    with stop.of(child.pid), _Pump(child, sink) as pump:
        ended_for: str | None = None
        kill_at = math.inf
        while not pump.has_ended(min(tick_seconds, kill_at - time.monotonic())):
            if ended_for is None and (ended_for := tick()) is not None:
                _signal_group(child.pid, signal.SIGTERM)
            if kill_at == math.inf and (ended_for is not None or stop.signal is not None):
                kill_at = time.monotonic() + grace
            if time.monotonic() >= kill_at:
                _signal_group(child.pid, signal.SIGKILL)
                kill_at = time.monotonic() + _TICK_SECONDS  # it may be stuck in the kernel; send it again
        _end_group(child.pid, pump, tick, grace)
    return Ended(code=child.returncode, ended_for=ended_for)


def _start(command: Sequence[str], environment: Mapping[bytes, bytes]) -> subprocess.Popen[bytes]:
    def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # its own process group, and no terminal that could stop it
            bufsize=0,
        )

    try:
        return start(command)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script without `#!` is run by a shell, as a shell itself would do.
    return start([shutil.which("bash") or "/bin/sh", *command])


class _Pump:
    """Reads output until the child ends, with no more than a buffer in memory."""

    def __init__(self, child: subprocess.Popen[bytes], sink: Sink) -> None:
        if child.stdout is None or child.stderr is None:
            raise AssertionError("started without pipes")
        self._child, self._sink = child, sink
        self._files = (child.stdout, child.stderr)
        self._selector = selectors.DefaultSelector()
        self._selector.register(child.stdout, selectors.EVENT_READ, False)
        self._selector.register(child.stderr, selectors.EVENT_READ, True)
        self._pidfd = os.pidfd_open(child.pid) if _HAS_PIDFD else None
        if self._pidfd is not None:
            self._selector.register(self._pidfd, selectors.EVENT_READ)

    def __enter__(self) -> _Pump:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.returncode is None:  # an error: leave no process behind
            _signal_group(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._selector.close()
        for file in self._files:
            file.close()
        if self._pidfd is not None:
            os.close(self._pidfd)

    def has_ended(self, seconds: float) -> bool:
        """Read for at most `seconds`; has the child itself ended?"""
        if self._pidfd is None:
            seconds = min(seconds, 0.02)
        for key, _ in self._selector.select(max(seconds, 0)):
            if key.fd != self._pidfd:
                self._read(key)
        return self._child.poll() is not None

    def drain(self, seconds: float) -> bool:
        """Read what helpers still write, for at most `seconds`. True: all of them have closed their end."""
        if self._pidfd is not None and self._pidfd in self._selector.get_map():
            self._selector.unregister(self._pidfd)
        until = time.monotonic() + seconds
        while self._selector.get_map():
            events = self._selector.select(max(until - time.monotonic(), 0))
            if not events:
                return False
            for key, _ in events:
                self._read(key)
        return True

    def _read(self, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, _READ_BYTES)
        if data:
            self._sink(data, key.data)
        else:
            self._selector.unregister(key.fileobj)


def _end_group(group: int, pump: _Pump, tick: Tick, grace: float) -> None:
    """The script has ended; end what it left running in its group."""
    pump.drain(_LINGER_SECONDS)
    for number, seconds in ((0, _LINGER_SECONDS), (signal.SIGTERM, grace), (signal.SIGKILL, _LINGER_SECONDS)):
        until = time.monotonic() + seconds
        _signal_group(group, number)
        while _is_alive(group) and time.monotonic() < until:
            pump.drain(0.01)
            time.sleep(0.01)
            tick()
    pump.drain(0)


def _signal_group(group: int, number: int) -> bool:
    """Does the group still exist?"""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # it ended, or now belongs to another user
        return False
    return True


def _is_alive(group: int) -> bool:
    """Zombies do not count: a container often has no init process that reaps them."""
    if not _signal_group(group, 0):
        return False
    if not (processes := list(Path("/proc").glob("[0-9]*/stat"))):
        return True
    for path in processes:
        with suppress(OSError):
            state, _, its_group, *_ = path.read_text().rpartition(")")[2].split()
            if int(its_group) == group and state not in "ZX":
                return True
    return False


def write_patiently(file_descriptor: int, data: bytes, tick: Callable[[], object]) -> None:
    """Write to a pipe whose reader may be slow; the child waits meanwhile.

    OSError: the pipe is closed, or `tick` returned something, so that it is time to end.
    """
    view = memoryview(data)
    while view:
        # A pipe that is ready takes PIPE_BUF bytes without blocking.
        while not select.select([], [file_descriptor], [], _SLOW_READER_SECONDS)[1]:
            if tick():
                raise BlockingIOError(errno.EAGAIN, "the reader is stuck, and it is time to end")
        with suppress(InterruptedError):
            view = view[os.write(file_descriptor, view[: select.PIPE_BUF]) :]
