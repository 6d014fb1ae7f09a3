"""Runs `dagster dev`, and sees that the embedded Postgres lives: without its own tables Dagster could not even ask.

So an `odf db stop` does not last meanwhile: end this first.

python -m opendataflow_dagster.orchestrator.dev PORT
"""

from __future__ import annotations

import signal
import subprocess
import sys
from types import FrameType

from ..ledger.database import Ledger
from ..ledger.embedded import EmbeddedPostgres
from ..ledger.settings import configured_url, database_url, home
from ..model.errors import EmbeddedPostgresError
from .storage import prepare_storage

_LOOK_SECONDS = 2.0


def main(port: str) -> int:
    with Ledger(database_url(), actor="dev") as ledger:
        prepare_storage(ledger)
    command = [sys.executable, "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", port, "-w", "workspace.yaml"]
    # Who was started in the background ignores it, and Dagster's processes stop each other by it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    dagster = subprocess.Popen(command)

    def end(number: int, frame: FrameType | None) -> None:
        dagster.send_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, end)
    # Ctrl-C reaches the whole group of processes by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            return dagster.wait(timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            _keep_alive()


def _keep_alive() -> None:
    if configured_url() is None:
        try:
            EmbeddedPostgres(home()).start()
        except EmbeddedPostgresError as error:
            sys.stderr.write(f"{error}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
