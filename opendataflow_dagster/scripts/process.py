"""A child process in a session of its own: its output pumped, its group ended whole, the caller asked every second.

No shell is involved: the command is a list of words, and values reach the child through its environment alone.
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

#: What came out, and whether on stderr.
Sink: TypeAlias = Callable[[bytes, bool], None]
#: Called every second or more often; a text ends the child, for that reason.
Tick: TypeAlias = Callable[[], str | None]

ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_OTHER_SIGNALS: Final = (signal.SIGUSR1, signal.SIGUSR2)

_TICK_SECONDS = 1.0
# Who waits for a slow reader must not miss the shortest lease.
_SLOW_READER_SECONDS = 0.1
_READ_BYTES = 65_536
# How long helpers of a script that has ended (a `tee`, say) may take for their last words.
_LINGER_SECONDS = 1.0
_HAS_PIDFD: Final = hasattr(os, "pidfd_open")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    #: Its exit code; negative: the signal that killed it.
    code: int
    #: Why we ended it; None: it ended by itself, or a signal was passed on to it.
    ended_for: str | None


class Stop:
    """Signals that this process gets, for all its children: passed on at once, and remembered."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._groups: set[int] = set()

    def get(self, number: int, _: FrameType | None = None) -> None:
        if number in ENDING_SIGNALS:
            # Who asks twice does not want to wait for the grace.
            passed_on = signal.SIGKILL if self.signal is not None else number
            self.signal = self.signal or number
        else:
            passed_on = number
        for group in tuple(self._groups):
            _signal_group(group, passed_on)

    @contextmanager
    def of(self, group: int) -> Iterator[None]:
        self._groups.add(group)
        try:
            if self.signal is not None:  # it came while the child was being born
                _signal_group(group, self.signal)
            yield
        finally:
            self._groups.discard(group)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Only in the main thread: Python gives signals to no other. What is ignored (`nohup`) stays so."""
        heard = [one for one in (*ENDING_SIGNALS, *_OTHER_SIGNALS) if signal.getsignal(one) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self.get) for number in heard}
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
    """Start, pump, wait. OSError: it could not be started."""
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
                kill_at = time.monotonic() + _TICK_SECONDS  # it may be stuck in the kernel: wait, and say it again
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
            start_new_session=True,  # a group of its own, and no terminal that could stop it
            bufsize=0,
        )

    try:
        return start(command)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script without `#!`: a shell would run it itself, and so do we.
    return start([shutil.which("bash") or "/bin/sh", *command])


class _Pump:
    """Waits for output and for the end, whichever comes first; never more than a buffer in memory."""

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
        if self._child.returncode is None:  # an error is on its way out: leave nobody behind
            _signal_group(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._selector.close()
        for file in self._files:
            file.close()
        if self._pidfd is not None:
            os.close(self._pidfd)

    def has_ended(self, seconds: float) -> bool:
        """Pump for at most so long; has the child itself ended?"""
        if self._pidfd is None:
            seconds = min(seconds, 0.02)
        for key, _ in self._selector.select(max(seconds, 0)):
            if key.fd != self._pidfd:
                self._read(key)
        return self._child.poll() is not None

    def drain(self, seconds: float) -> bool:
        """What helpers still write, for at most so long; True: all of them have closed their end."""
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
    """The script has ended; what it left running in its group ends, too."""
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
    """Is there anybody left?"""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # gone, or become another user's, which is not ours to end
        return False
    return True


def _is_alive(group: int) -> bool:
    """Not counting the dead whom nobody buries: in a container there is often no init that does."""
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
    """To a pipe that nobody may be reading just now: the child waits then, and its lease is renewed all the same.
    OSError: nobody reads, or `tick` says that it is time to end."""
    view = memoryview(data)
    while view:
        # A pipe that is ready takes PIPE_BUF bytes without blocking.
        while not select.select([], [file_descriptor], [], _SLOW_READER_SECONDS)[1]:
            if tick():
                raise BlockingIOError(errno.EAGAIN, "nobody reads, and it is time to end")
        with suppress(InterruptedError):
            view = view[os.write(file_descriptor, view[: select.PIPE_BUF]) :]
