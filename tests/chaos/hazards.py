"""What happens to the processes of the hostile run: kill -9, cut connections, and a Postgres that crashes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

import psycopg

from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.ledger.embedded_process import find_postmaster
from opendataflow_dagster.ledger.reach import LOOPBACK
from tests.chaos.actors import claimer, steward, typist
from tests.chaos.pipeline import Scene
from tests.effort import PATIENCE_SECONDS
from tests.superuser import start_fast

#: Starts a process in milliseconds, with the modules loaded already.
PROCESSES: Final = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.chaos.actors"])

CLAIMERS: Final = 8
TYPISTS: Final = 2
STEWARDS: Final = 2
#: The chance that the proxy cuts a connection instead of passing on a message.
CUTS: Final = 1 / 300
RESTART_SECONDS: Final = (8.0, 16.0)


class CuttingProxy:
    """Resets connections in the middle of a verb: before a statement arrives, or when its answer is on the way back."""

    def __init__(self, port: int, random: Random, cuts: Counter[str]) -> None:
        self._upstream, self._random, self._cuts = (LOOPBACK, port), random, cuts
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._upstream)
                except OSError:
                    client.close()
                    continue
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while message := source.recv(65536):
                if self._random.random() < CUTS:
                    self._cuts["reset by the proxy"] += 1
                    for end in (source, target):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                target.sendall(message)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Troupe:
    """The processes. Those that are killed are replaced."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._born = 0
        self.claimers = [self._claimer() for _ in range(CLAIMERS)]
        self._others = [self._start(typist, f"typist {n}") for n in range(TYPISTS)]
        self._others += [self._start(steward, f"steward {n}") for n in range(STEWARDS)]

    def _claimer(self) -> multiprocessing.process.BaseProcess:
        self._born += 1
        return self._start(claimer, f"claimer {self._born}", self._born % 2 == 0)

    def _start(self, act: Callable[..., None], name: str, *given: object) -> multiprocessing.process.BaseProcess:
        process = PROCESSES.Process(target=act, args=(self._scene, name, *given), name=name, daemon=True)
        process.start()
        return process

    def kill_claimer(self, random: Random) -> None:
        place = random.randrange(CLAIMERS)
        self.claimers[place].kill()
        self.claimers[place].join()
        self.claimers[place] = self._claimer()

    def join(self) -> list[str]:
        """Wait until the show is over; the names of those that did not end well."""
        end = time.monotonic() + PATIENCE_SECONDS
        everyone = [*self.claimers, *self._others]
        for process in everyone:
            process.join(max(0.0, end - time.monotonic()))
        stuck = [f"{process.name} ended with {process.exitcode}" for process in everyone if process.exitcode != 0]
        for process in everyone:
            process.kill()
        return stuck


def crash(home: Path, how: signal.Signals) -> None:
    """SIGQUIT is an immediate shutdown, SIGKILL what the machine does when it is out of memory."""
    postmaster = find_postmaster(home / "postgres")
    assert postmaster is not None, "the server runs"
    os.kill(postmaster.pid, how)


def cut_connections(url: str, random: Random) -> int:
    """End some sessions that are in the middle of a statement or a transaction."""
    with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        busy = [
            row[0]
            for row in connection.execute(
                "select pid from pg_stat_activity where datname = current_database() and state <> 'idle'"
                " and pid <> pg_backend_pid() and application_name <> 'chaos'"
            )
        ]
        chosen = random.sample(busy, min(len(busy), 2))
        for pid in chosen:
            connection.execute("select pg_terminate_backend(%s)", (pid,))
        return len(chosen)
    return 0


def torment(scene: Scene, embedded: EmbeddedPostgres, home: Path, troupe: Troupe, hazards: Counter[str]) -> None:
    random = scene.random("hazards")
    next_restart = time.monotonic() + random.uniform(*RESTART_SECONDS)
    while not scene.is_over():
        time.sleep(random.uniform(0, 0.6))
        if time.monotonic() >= next_restart:
            how = random.choice((signal.SIGQUIT, signal.SIGKILL))
            crash(home, how)
            hazards[f"Postgres ended with {how.name}"] += 1
            assert embedded.start() == scene.url, "the server came back on another port, because its own was taken"
            next_restart = time.monotonic() + random.uniform(*RESTART_SECONDS)
        elif random.random() < 0.3:
            troupe.kill_claimer(random)
            hazards["claimers killed with kill -9"] += 1
        else:
            hazards["sessions terminated"] += cut_connections(scene.url, random)


@contextmanager
def own_server(home: Path) -> Iterator[tuple[EmbeddedPostgres, str]]:
    embedded = EmbeddedPostgres(home)
    try:
        # Commits survive a crash of the server, which is what happens here; not one of the machine.
        yield embedded, start_fast(embedded, home, ("fsync", "full_page_writes"))
    finally:
        embedded.stop()
