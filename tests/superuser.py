"""What only a superuser may do. The embedded server's has no login, so it is stopped and runs in single-user mode."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from opendataflow_dagster.ledger.embedded import EmbeddedPostgres
from opendataflow_dagster.ledger.embedded_cluster import program
from opendataflow_dagster.ledger.embedded_user import server_user
from tests.effort import PATIENCE_SECONDS


def start_fast(embedded: EmbeddedPostgres, home: Path, settings_off: Sequence[str]) -> str:
    """The URL of a server with these settings off. Its login may also bypass triggers, to prepare and restore rows, and
    have the calls of functions counted."""
    embedded.start()
    embedded.stop()
    as_superuser(
        home,
        *(f"alter system set {setting} = off" for setting in settings_off),
        "grant set on parameter session_replication_role, track_functions to odf",
    )
    return embedded.start()


def as_superuser(home: Path, *statements: str) -> None:
    user = server_user(home, home / "postgres").passing(home, program("postgres"))
    command = [str(program("postgres")), "--single", "-D", str(home / "postgres"), "-c", "exit_on_error=on", "postgres"]
    with tempfile.TemporaryFile() as lines:
        lines.write("".join(f"{statement}\n" for statement in statements).encode())
        lines.seek(0)
        done = user.run(command, stdin=lines, seconds=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout
