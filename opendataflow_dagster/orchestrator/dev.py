"""Runs `dagster dev`, and restarts the embedded Postgres if it stops: Dagster's own tables are in it.

So `odf db stop` has no lasting effect while this runs; end this first.

python -m opendataflow_dagster.orchestrator.dev PORT
"""

from __future__ import annotations

import signal
import subprocess
import sys
from types import FrameType

from ..engine.connections import keep_embedded_postgres_alive, open_ledger, prepare_dagster_storage
from ..model.errors import EmbeddedPostgresError
from ..model.text import printable

_CHECK_SECONDS = 2.0


def main(port: str) -> int:
    with open_ledger("dev") as ledger:
        prepare_dagster_storage(ledger)
    command = [sys.executable, "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", port, "-w", "workspace.yaml"]
    # A process started in the background ignores SIGINT, and Dagster's processes stop each other with it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    dagster = subprocess.Popen(command)

    def end(number: int, frame: FrameType | None) -> None:
        dagster.send_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, end)
    # Ctrl-C reaches every process of the group by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            return dagster.wait(timeout=_CHECK_SECONDS)
        except subprocess.TimeoutExpired:
            try:
                keep_embedded_postgres_alive()
            except EmbeddedPostgresError as error:
                sys.stderr.write(f"{printable(str(error))}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
